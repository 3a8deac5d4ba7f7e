#include "kernels/transport/in_process.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "kernels/base/buffer.h"
#include "kernels/base/status_macros.h"
#include "kernels/transport/failure.h"
#include "kernels/transport/wait.h"

namespace pipeloom {
namespace {

constexpr size_t kCacheLine = 64;

// One byte at least, so that an empty message has an address too.
size_t SlotBytes(const ChannelSpec& spec) {
  return std::max<size_t>(1, static_cast<size_t>(spec.bytes) * static_cast<size_t>(spec.slots));
}

// What the two ends share. Each counter is written by one end and polled by the other, hence a cache line for each.
struct Channel {
  explicit Channel(const ChannelSpec& spec_in) : spec(spec_in), slots(SlotBytes(spec_in)) {}

  char* Slot(int64_t k) { return slots.data() + SlotOf(spec, k) * spec.bytes; }

  const ChannelSpec spec;
  Buffer slots;
  bool send_opened = false;  // these two: under the hub's mutex
  bool receive_opened = false;
  alignas(kCacheLine) std::atomic<int64_t> sent{0};      // messages, by the sender
  alignas(kCacheLine) std::atomic<int64_t> released{0};  // messages, by the receiver
};

// What all ranks share: the channels, and the first failure. It lives as long as a transport or an end does.
class Hub {
 public:
  explicit Hub(int size) : size_(size) {}

  int size() const { return size_; }
  Failure& failure() { return failure_; }

  absl::StatusOr<Channel*> Open(const ChannelSpec& spec, ChannelEnd end, RankId rank) {
    RETURN_IF_ERROR(CheckChannelEnd(spec, end, rank, size_));
    std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<Channel>& channel = channels_[std::make_tuple(spec.source, spec.destination, spec.tag)];
    if (channel == nullptr) channel = std::make_unique<Channel>(spec);
    bool& opened = end == ChannelEnd::kSend ? channel->send_opened : channel->receive_opened;
    if (opened) return OpenedTwiceError(spec, end);
    RETURN_IF_ERROR(CheckSameSpec(spec, channel->spec));
    opened = true;
    return channel.get();
  }

 private:
  const int size_;
  std::mutex mutex_;
  absl::flat_hash_map<std::tuple<RankId, RankId, ChannelTag>, std::unique_ptr<Channel>> channels_;
  alignas(kCacheLine) Failure failure_;
};

class InProcessSendEnd : public SendEnd {
 public:
  InProcessSendEnd(std::shared_ptr<Hub> hub, Channel* channel) : hub_(std::move(hub)), channel_(channel) {}

  char* Slot(int64_t k) override { return channel_->Slot(k); }

  absl::Status Acquire(int64_t k, Deadline deadline) override {
    const int64_t needed = ReleasedBefore(channel_->spec, k);
    const auto is_free = [&] { return channel_->released.load(std::memory_order_acquire) >= needed; };
    return WaitUntil(is_free, hub_->failure(), deadline, {channel_->spec.source, channel_->spec, k, "a free slot"});
  }

  void Send(int64_t k) override {
    const int64_t sent = channel_->sent.load(std::memory_order_relaxed);
    PIPELOOM_CHECK(k == sent, ChannelName(channel_->spec), ": message ", k, " sent where ", sent, " is next");
    channel_->sent.store(k + 1, std::memory_order_release);
  }

 private:
  const std::shared_ptr<Hub> hub_;
  Channel* const channel_;
};

class InProcessReceiveEnd : public ReceiveEnd {
 public:
  InProcessReceiveEnd(std::shared_ptr<Hub> hub, Channel* channel) : hub_(std::move(hub)), channel_(channel) {}

  char* Slot(int64_t k) override { return channel_->Slot(k); }

  absl::Status Receive(int64_t k, Deadline deadline) override {
    const auto has_arrived = [&] { return channel_->sent.load(std::memory_order_acquire) > k; };
    return WaitUntil(has_arrived, hub_->failure(), deadline,
                     {channel_->spec.destination, channel_->spec, k, "its arrival"});
  }

  void Release(int64_t k) override {
    const int64_t released = channel_->released.load(std::memory_order_relaxed);
    const int64_t sent = channel_->sent.load(std::memory_order_relaxed);
    PIPELOOM_CHECK(released <= k && k < sent, ChannelName(channel_->spec), ": message ", k, " released, with ",
                   released, " released before and ", sent, " sent");
    channel_->released.store(k + 1, std::memory_order_release);
  }

 private:
  const std::shared_ptr<Hub> hub_;
  Channel* const channel_;
};

class InProcessTransport : public Transport {
 public:
  InProcessTransport(std::shared_ptr<Hub> hub, RankId rank) : hub_(std::move(hub)), rank_(rank) {}

  RankId rank() const override { return rank_; }
  int size() const override { return hub_->size(); }

  absl::StatusOr<std::unique_ptr<SendEnd>> OpenSend(const ChannelSpec& spec) override {
    ASSIGN_OR_RETURN(Channel * channel, hub_->Open(spec, ChannelEnd::kSend, rank_));
    return std::make_unique<InProcessSendEnd>(hub_, channel);
  }

  absl::StatusOr<std::unique_ptr<ReceiveEnd>> OpenReceive(const ChannelSpec& spec) override {
    ASSIGN_OR_RETURN(Channel * channel, hub_->Open(spec, ChannelEnd::kReceive, rank_));
    return std::make_unique<InProcessReceiveEnd>(hub_, channel);
  }

  void Progress() override {}
  void Fail(const absl::Status& status) override { hub_->failure().Set(status); }
  absl::Status failure() const override { return hub_->failure().status(); }

 private:
  const std::shared_ptr<Hub> hub_;
  const RankId rank_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> MakeInProcessTransports(int size) {
  PIPELOOM_CHECK(size >= 1, size, " ranks");
  const auto hub = std::make_shared<Hub>(size);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int rank = 0; rank < size; ++rank) {
    transports.push_back(std::make_unique<InProcessTransport>(hub, RankId(rank)));
  }
  return transports;
}

}  // namespace pipeloom
