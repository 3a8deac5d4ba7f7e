// Every wait ends: with the message, at its deadline, or with the first failure of any rank.

#include <atomic>
#include <stdexcept>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "kernels/base/status_macros.h"
#include "tests/transport/conformance.h"

namespace pipeloom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// Far more than a loaded machine needs to end a wait, far less than Soon().
constexpr seconds kPromptly(10);

// The wait gave DeadlineExceeded after its 100 ms, and says who waited for what and where.
void ExpectDeadline(const absl::Status& status, steady_clock::duration waited, const std::string& place,
                    const std::string& awaited) {
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_GE(waited, milliseconds(100));
  EXPECT_LT(waited, kPromptly);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr(place), MatchesRegex(absl::StrCat(".*waited [0-9]+.[0-9]+ seconds for ", awaited, ".*"))));
}

TEST_P(TransportPairTest, DeadlineOfAMissingMessage) {
  const ChannelSpec spec = Spec(RankId(0), last(), 5, 64, 2);
  std::atomic<int64_t>& done = Counter(0);
  RunRanksOk([&](Transport& transport) -> absl::Status {
    if (transport.rank() == spec.source) {
      ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(spec));
      RETURN_IF_ERROR(SendMessage(*send, spec, 0));
      ProgressUntil(transport, [&] { return done.load() == 1; });
    } else if (transport.rank() == spec.destination) {
      ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(spec));
      RETURN_IF_ERROR(ReceiveMessage(*receive, spec, 0));
      const steady_clock::time_point start = steady_clock::now();
      const absl::Status status = receive->Receive(1, start + milliseconds(100));
      ExpectDeadline(
          status, steady_clock::now() - start,
          absl::StrCat("rank ", size() - 1, ": channel 'value5' (rank 0 -> rank ", size() - 1, ", tag 5), message 1: "),
          "its arrival; see what kept rank 0");
      done.store(1);
    }
    return absl::OkStatus();
  });
  for (const auto& transport : transports_) {
    if (transport == nullptr) continue;  // of another process
    EXPECT_TRUE(transport->failure().ok()) << "a deadline is the waiter's affair until it says Fail";
  }
}

TEST_P(TransportPairTest, DeadlineOfAMissingCredit) {
  const ChannelSpec spec = Spec(last(), RankId(0), 6, 64, 2);
  std::atomic<int64_t>& done = Counter(0);
  RunRanksOk([&](Transport& transport) -> absl::Status {
    if (transport.rank() == spec.source) {
      ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(spec));
      for (int64_t k = 0; k < 3; ++k) RETURN_IF_ERROR(SendMessage(*send, spec, k));
      const steady_clock::time_point start = steady_clock::now();
      const absl::Status status = send->Acquire(3, start + milliseconds(100));
      ExpectDeadline(
          status, steady_clock::now() - start,
          absl::StrCat("rank ", size() - 1, ": channel 'value6' (rank ", size() - 1, " -> rank 0, tag 6), message 3: "),
          "a free slot; see what kept rank 0");
      done.store(1);
    } else if (transport.rank() == spec.destination) {
      ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(spec));
      RETURN_IF_ERROR(ReceiveMessage(*receive, spec, 0));
      ProgressUntil(transport, [&] { return done.load() == 1; });
      RETURN_IF_ERROR(ReceiveMessage(*receive, spec, 1));
    }
    return absl::OkStatus();
  });
}

// A wait that its deadline ended can be taken up again.
TEST_P(TransportPairTest, MessageAfterADeadline) {
  const ChannelSpec spec = Spec(RankId(0), last(), 0, 64);
  std::atomic<int64_t>& expired = Counter(0);
  RunRanksOk([&](Transport& transport) -> absl::Status {
    if (transport.rank() == spec.source) {
      ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(spec));
      ProgressUntil(transport, [&] { return expired.load() == 1; });
      RETURN_IF_ERROR(SendMessage(*send, spec, 0));
    } else if (transport.rank() == spec.destination) {
      ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(spec));
      EXPECT_EQ(receive->Receive(0, After(milliseconds(1))).code(), absl::StatusCode::kDeadlineExceeded);
      expired.store(1);
      RETURN_IF_ERROR(ReceiveMessage(*receive, spec, 0));
    }
    return absl::OkStatus();
  });
}

// Rank r waits for a message of r - 1 that never comes: a ring in which only a failure ends anything.
absl::Status WaitForPrevious(Transport& transport) {
  const int size = transport.size();
  const RankId next((transport.rank().value() + 1) % size);
  const RankId previous((transport.rank().value() + size - 1) % size);
  ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(Spec(transport.rank(), next, 0, 8)));
  ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(Spec(previous, transport.rank(), 0, 8)));
  return receive->Receive(0, Soon());
}

TEST_P(TransportTest, FailureEndsTheWaitsOfAllRanks) {
  const absl::Status broken = absl::DataLossError("rank 0: 1F2: label 12 is out of range");
  const steady_clock::time_point start = steady_clock::now();
  std::thread failing;
  const std::vector<absl::Status> statuses = RunRanks([&](Transport& transport) -> absl::Status {
    if (transport.rank() == RankId(0)) {
      failing = std::thread([&] {
        std::this_thread::sleep_for(milliseconds(50));
        transport.Fail(broken);
      });
    }
    return WaitForPrevious(transport);
  });
  EXPECT_LT(steady_clock::now() - start, kPromptly);
  if (failing.joinable()) failing.join();
  for (const absl::Status& status : statuses) EXPECT_EQ(status, broken);
}

// Ranks that wait only later get the first failure too, even where the wait would have been over at once, and whatever
// else fails after it.
TEST_P(TransportTest, FailureEndsLaterWaitsAndTheFirstOneStays) {
  const absl::Status first = absl::InternalError("rank 0 fell over");
  std::atomic<int64_t>& ready = Counter(0);
  RunRanksOk([&](Transport& transport) -> absl::Status {
    const ChannelSpec spec = Spec(transport.rank(), transport.rank(), 0, 8, 2);
    ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(spec));
    ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(spec));
    RETURN_IF_ERROR(SendMessage(*send, spec, 0));
    ready.fetch_add(1);
    if (transport.rank() == RankId(0)) {
      ProgressUntil(transport, [&] { return ready.load() == size(); });
      transport.Fail(first);
    }
    ProgressUntil(transport, [&] { return !transport.failure().ok(); });
    transport.Fail(absl::CancelledError("a later failure"));
    const steady_clock::time_point start = steady_clock::now();
    EXPECT_EQ(receive->Receive(0, Soon()), first);  // has arrived
    EXPECT_EQ(receive->Receive(1, Soon()), first);
    EXPECT_EQ(send->Acquire(1, Soon()), first);  // has its slot
    EXPECT_EQ(send->Acquire(2, Soon()), first);
    EXPECT_EQ(transport.failure(), first);
    EXPECT_LT(steady_clock::now() - start, kPromptly);
    return absl::OkStatus();
  });
}

TEST_P(TransportTest, RanksThatFailAtOnceAgreeOnOneFailure) {
  const std::vector<absl::Status> seen = RunRanks([&](Transport& transport) {
    transport.Fail(absl::InternalError(absl::StrCat("rank ", transport.rank().value())));
    return transport.failure();
  });
  EXPECT_EQ(seen[0].code(), absl::StatusCode::kInternal);
  for (const absl::Status& status : seen) EXPECT_EQ(status, seen[0]);
}

TEST_P(TransportPairTest, ExceptionInOneRankEndsTheOthers) {
  const steady_clock::time_point start = steady_clock::now();
  const std::vector<absl::Status> statuses = RunRanks([&](Transport& transport) -> absl::Status {
    if (transport.rank() == last()) throw std::runtime_error("out of luck");
    return WaitForPrevious(transport);
  });
  EXPECT_LT(steady_clock::now() - start, kPromptly);
  for (const absl::Status& status : statuses) EXPECT_EQ(status, absl::InternalError("exception: out of luck"));
}

// A rank that leaves without a word takes its transport and its ends with it; the others' waits end at their deadline,
// or before it with the reason, where the transport has noticed.
TEST_P(TransportPairTest, RankThatIsGone) {
  const ChannelSpec there = Spec(RankId(0), last(), 0, 64);
  const ChannelSpec back = Spec(last(), RankId(0), 0, 64);
  RunRanksOk([&](Transport& transport) -> absl::Status {
    if (transport.rank() == last()) {
      ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(there));
      ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(back));
      RETURN_IF_ERROR(ReceiveMessage(*receive, there, 0));
      transports_[size() - 1].reset();
    } else if (transport.rank() == RankId(0)) {
      ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(there));
      ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(back));
      RETURN_IF_ERROR(SendMessage(*send, there, 0));
      RETURN_IF_ERROR(SendMessage(*send, there, 1));
      for (const absl::Status& status :
           {receive->Receive(0, After(milliseconds(100))), send->Acquire(2, After(milliseconds(100)))}) {
        const bool noticed =
            absl::IsUnavailable(status) && absl::StrContains(status.message(), "has closed its transport");
        EXPECT_TRUE(absl::IsDeadlineExceeded(status) || noticed) << status;
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace pipeloom
