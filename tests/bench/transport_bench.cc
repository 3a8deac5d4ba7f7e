// One-way time of a message between two ranks: from the sender's first byte to the receiver's last one read. A message
// goes there and back, and the half is shown as one_way; bytes_per_second counts both. The two ranks need a core each
// for the figure to mean anything. They are threads, which for shared memory makes no difference: each rank maps it for
// itself.

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "kernels/base/buffer.h"
#include "kernels/base/status_macros.h"
#include "kernels/transport/in_process.h"
#include "kernels/transport/shm.h"

namespace pipeloom {
namespace {

// One rank's side of the two channels, with the value that it sends.
class Peer {
 public:
  Peer(Transport& transport, RankId other, int64_t bytes) : bytes_(bytes), value_(bytes) {
    const RankId self = transport.rank();
    auto send = transport.OpenSend({self, other, ChannelTag(0), "bench", bytes, 1});
    auto receive = transport.OpenReceive({other, self, ChannelTag(0), "bench", bytes, 1});
    PIPELOOM_CHECK(send.ok() && receive.ok(), send.status().ToString(), receive.status().ToString());
    send_ = *std::move(send);
    receive_ = *std::move(receive);
  }

  absl::Status Send(int64_t k) {
    RETURN_IF_ERROR(send_->Acquire(k, Deadline::max()));
    std::memcpy(send_->Slot(k), value_.data(), bytes_);
    send_->Send(k);
    return absl::OkStatus();
  }

  absl::Status Receive(int64_t k) {
    RETURN_IF_ERROR(receive_->Receive(k, Deadline::max()));
    const int64_t* words = reinterpret_cast<const int64_t*>(receive_->Slot(k));
    int64_t sum = 0;
    for (int64_t i = 0; i < bytes_ / 8; ++i) sum += words[i];
    benchmark::DoNotOptimize(sum);
    receive_->Release(k);
    return absl::OkStatus();
  }

 private:
  const int64_t bytes_;
  Buffer value_;
  std::unique_ptr<SendEnd> send_;
  std::unique_ptr<ReceiveEnd> receive_;
};

void PingPong(benchmark::State& state, const std::vector<std::unique_ptr<Transport>>& ranks) {
  const int64_t bytes = state.range(0);
  std::thread echo([&] {
    Peer peer(*ranks[1], RankId(0), bytes);
    absl::Status status;
    for (int64_t k = 0; status.ok(); ++k) {
      status = peer.Receive(k);
      if (status.ok()) status = peer.Send(k);
    }
  });
  Peer peer(*ranks[0], RankId(1), bytes);
  int64_t k = 0;
  for (auto _ : state) {
    PIPELOOM_CHECK(peer.Send(k).ok() && peer.Receive(k).ok(), "message ", k);
    ++k;
  }
  ranks[0]->Fail(absl::CancelledError("the benchmark is over"));
  echo.join();
  state.counters["one_way"] =
      benchmark::Counter(2.0 * static_cast<double>(k), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetBytesProcessed(2 * k * bytes);
}

void BM_InProcess(benchmark::State& state) { PingPong(state, MakeInProcessTransports(2)); }
BENCHMARK(BM_InProcess)->Arg(8)->Arg(4 << 10)->Arg(16 << 10)->Arg(128 << 10)->Arg(1 << 20)->UseRealTime();

void BM_Shm(benchmark::State& state) {
  const std::string rendezvous = absl::StrCat("file:/tmp/pipeloom_transport_bench.", getpid());
  const auto make = [&](int rank) { return MakeShmTransport({RankId(rank), 2, rendezvous, std::chrono::seconds(10)}); };
  absl::StatusOr<std::unique_ptr<Transport>> other;
  std::thread other_rank([&] { other = make(1); });
  absl::StatusOr<std::unique_ptr<Transport>> first = make(0);
  other_rank.join();
  PIPELOOM_CHECK(first.ok() && other.ok(), first.status().ToString(), other.status().ToString());
  std::vector<std::unique_ptr<Transport>> ranks;
  ranks.push_back(*std::move(first));
  ranks.push_back(*std::move(other));
  PingPong(state, ranks);
}
BENCHMARK(BM_Shm)->Arg(8)->Arg(4 << 10)->Arg(16 << 10)->Arg(128 << 10)->Arg(1 << 20)->UseRealTime();

}  // namespace
}  // namespace pipeloom

BENCHMARK_MAIN();
