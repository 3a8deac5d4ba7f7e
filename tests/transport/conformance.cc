#include "tests/transport/conformance.h"

#include <unistd.h>

#include <exception>
#include <thread>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "kernels/transport/in_process.h"
#include "kernels/transport/mpi.h"
#include "kernels/transport/shm.h"
#include "tests/transport/process_group.h"

namespace pipeloom {
namespace {

constexpr std::chrono::seconds kStart(60);

// This process's rank; the others' are elsewhere.
absl::StatusOr<std::vector<std::unique_ptr<Transport>>> MakeMpiRank(int size) {
  std::vector<std::unique_ptr<Transport>> transports(size);
  ASSIGN_OR_RETURN(std::unique_ptr<Transport> mine, MakeMpiTransport(kStart));
  const int rank = mine->rank().value();
  transports[rank] = std::move(mine);
  return transports;
}

ShmWorld ShmRank(int rank, int size, const std::string& file) {
  return {RankId(rank), size, absl::StrCat("file:", file), kStart};
}

absl::StatusOr<std::vector<std::unique_ptr<Transport>>> MakeShmProcess(int size) {
  std::vector<std::unique_ptr<Transport>> transports(size);
  const int rank = ProcessGroup::Get()->rank();
  ASSIGN_OR_RETURN(transports[rank], MakeShmTransport(ShmRank(rank, size, ProcessGroup::Get()->SharedPath("shm"))));
  return transports;
}

// Each rank waits for the others to come, so each is made by a thread.
absl::StatusOr<std::vector<std::unique_ptr<Transport>>> MakeShmThreads(int size) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/shm_conformance.", getpid());
  std::vector<absl::StatusOr<std::unique_ptr<Transport>>> made(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { made[rank] = MakeShmTransport(ShmRank(rank, size, file)); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::unique_ptr<Transport>> transports;
  for (auto& transport : made) {
    RETURN_IF_ERROR(transport.status());
    transports.push_back(*std::move(transport));
  }
  return transports;
}

// Ends MPI after all tests.
class MpiEnvironment : public ::testing::Environment {
  void TearDown() override {
    const absl::Status status = FinalizeMpi(kStart);
    EXPECT_TRUE(status.ok()) << status;
  }
};

}  // namespace

std::vector<TransportCase> TransportCases() {
  if (ProcessGroup::Get() != nullptr) return {{"mpi", MakeMpiRank}, {"shm", MakeShmProcess}};
  return {
      {"in_process", MakeInProcessTransports},
      {"shm", MakeShmThreads},
  };
}

namespace {

using Param = std::tuple<TransportCase, int>;

std::vector<Param> Params(int smallest) {
  std::vector<Param> params;
  for (const TransportCase& transport : TransportCases()) {
    for (int size = smallest; size <= 8; ++size) {
      if (ProcessGroup::Get() == nullptr || ProcessGroup::Get()->size() == size) params.emplace_back(transport, size);
    }
  }
  return params;
}

std::string CaseName(const ::testing::TestParamInfo<Param>& info) {
  return absl::StrCat(std::get<TransportCase>(info.param).name, "_", std::get<int>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Sizes, TransportTest, ::testing::ValuesIn(Params(1)), CaseName);
INSTANTIATE_TEST_SUITE_P(Sizes, TransportPairTest, ::testing::ValuesIn(Params(2)), CaseName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportPairTest);  // where mpirun started one process

const ::testing::Environment* const kMpiEnvironment =
    ::testing::AddGlobalTestEnvironment(std::make_unique<MpiEnvironment>().release());

absl::Status CatchAll(const std::function<absl::Status(Transport&)>& body, Transport& transport) {
  try {
    return body(transport);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("exception: ", error.what()));
  }
}

// A multiplicative hash of the channel and the message, from which the bytes then count.
uint32_t Seed(const ChannelSpec& spec, int64_t k) {
  uint32_t seed = static_cast<uint32_t>(k);
  for (int part : {spec.source.value(), spec.destination.value(), spec.tag.value()}) {
    seed = seed * 2654435761u + static_cast<uint32_t>(part) + 1u;
  }
  return seed * 2654435761u;
}

char PatternByte(uint32_t seed, int64_t i) {
  return static_cast<char>((seed + static_cast<uint32_t>(i) * 2246822519u) >> 24);
}

}  // namespace

void TransportTest::SetUp() {
  if (ProcessGroup::Get() != nullptr) ProcessGroup::Get()->BeginTest();
  MakeTransports();
}

void TransportTest::MakeTransports() {
  transports_.clear();
  auto made = std::get<TransportCase>(GetParam()).make(size());
  if (absl::IsUnavailable(made.status())) GTEST_SKIP() << made.status();
  ASSERT_TRUE(made.ok()) << made.status();
  transports_ = *std::move(made);
  ASSERT_EQ(transports_.size(), static_cast<size_t>(size()));
}

std::atomic<int64_t>& TransportTest::Counter(int number) {
  return ProcessGroup::Get() != nullptr ? ProcessGroup::Get()->counter(number) : counters_.at(number);
}

std::vector<absl::Status> TransportTest::RunRanks(const Body& body) {
  const auto run = [&](size_t rank) {
    const absl::Status status = CatchAll(body, *transports_[rank]);
    if (!status.ok()) transports_[rank]->Fail(status);
    return status;
  };
  if (ProcessGroup* const group = ProcessGroup::Get(); group != nullptr) {
    const absl::Status mine = run(group->rank());
    return group->Gather(mine, [&] {
      if (transports_[group->rank()] != nullptr) transports_[group->rank()]->Progress();
    });
  }
  std::vector<absl::Status> statuses(transports_.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < transports_.size(); ++rank) {
    threads.emplace_back([&, rank] { statuses[rank] = run(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

void TransportTest::RunRanksOk(const Body& body) {
  const std::vector<absl::Status> statuses = RunRanks(body);
  for (size_t rank = 0; rank < statuses.size(); ++rank) EXPECT_TRUE(statuses[rank].ok()) << rank << statuses[rank];
}

Deadline Soon() { return After(std::chrono::seconds(60)); }
Deadline After(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

void ProgressUntil(Transport& transport, const std::function<bool()>& done) {
  for (const Deadline hang = Soon(); !done() && std::chrono::steady_clock::now() < hang;) {
    transport.Progress();
    std::this_thread::yield();
  }
}

ChannelSpec Spec(RankId source, RankId destination, int tag, int64_t bytes, int slots) {
  return {source, destination, ChannelTag(tag), absl::StrCat("value", tag), bytes, slots};
}

void FillMessage(const ChannelSpec& spec, int64_t k, char* slot) {
  const uint32_t seed = Seed(spec, k);
  for (int64_t i = 0; i < spec.bytes; ++i) slot[i] = PatternByte(seed, i);
}

absl::Status CheckMessage(const ChannelSpec& spec, int64_t k, const char* slot) {
  const uint32_t seed = Seed(spec, k);
  for (int64_t i = 0; i < spec.bytes; ++i) {
    if (slot[i] == PatternByte(seed, i)) continue;
    return absl::DataLossError(absl::StrCat(ChannelToString(spec), ", message ", k, ", byte ", i, ": ", int{slot[i]},
                                            " where ", int{PatternByte(seed, i)}, " was sent"));
  }
  return absl::OkStatus();
}

absl::Status SendMessage(SendEnd& end, const ChannelSpec& spec, int64_t k) {
  RETURN_IF_ERROR(end.Acquire(k, Soon()));
  FillMessage(spec, k, end.Slot(k));
  end.Send(k);
  return absl::OkStatus();
}

absl::Status ReceiveMessage(ReceiveEnd& end, const ChannelSpec& spec, int64_t k) {
  RETURN_IF_ERROR(end.Receive(k, Soon()));
  RETURN_IF_ERROR(CheckMessage(spec, k, end.Slot(k)));
  end.Release(k);
  return absl::OkStatus();
}

absl::Status Stream(Transport& transport, const std::vector<ChannelSpec>& specs, int64_t count) {
  for (const ChannelSpec& spec : specs) {
    if (transport.rank() == spec.source) {
      ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(spec));
      for (int64_t k = 0; k < count; ++k) RETURN_IF_ERROR(SendMessage(*send, spec, k));
    } else if (transport.rank() == spec.destination) {
      ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(spec));
      for (int64_t k = 0; k < count; ++k) RETURN_IF_ERROR(ReceiveMessage(*receive, spec, k));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
