// What opening a channel promises and refuses, and what a message costs.

#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "kernels/base/status_macros.h"
#include "tests/testlib/allocation_count.h"
#include "tests/transport/conformance.h"

namespace pipeloom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void ExpectInvalid(const absl::Status& status, const ::testing::Matcher<std::string>& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), message);
}

TEST_P(TransportTest, KnowsItsRanks) {
  RunRanksOk([this](Transport& transport) {
    EXPECT_EQ(transport.size(), size());
    EXPECT_TRUE(transport.failure().ok());
    Counter(transport.rank().value()).fetch_add(1);
    return absl::OkStatus();
  });
  for (int rank = 0; rank < size(); ++rank) EXPECT_EQ(Counter(rank).load(), 1) << "ranks that call themselves " << rank;
}

TEST_P(TransportTest, RankOutOfRangeIsRefused) {
  RunRanksOk([this](Transport& transport) {
    const RankId self = transport.rank();
    for (int wrong : {-1, size(), size() + 100}) {
      const auto message = AllOf(HasSubstr("channel 'value3'"), HasSubstr(absl::StrCat("rank ", wrong, " as its")),
                                 HasSubstr(absl::StrCat("0 to ", size() - 1)));
      ExpectInvalid(transport.OpenSend(Spec(self, RankId(wrong), 3, 8)).status(), message);
      ExpectInvalid(transport.OpenSend(Spec(RankId(wrong), self, 3, 8)).status(), message);
      ExpectInvalid(transport.OpenReceive(Spec(self, RankId(wrong), 3, 8)).status(), message);
      ExpectInvalid(transport.OpenReceive(Spec(RankId(wrong), self, 3, 8)).status(), message);
    }
    return absl::OkStatus();
  });
}

TEST_P(TransportTest, NoSlotsNoRoundAndNegativeBytesAreRefused) {
  RunRanksOk([](Transport& transport) {
    const RankId self = transport.rank();
    ExpectInvalid(transport.OpenSend(Spec(self, self, 3, 8, 0)).status(), HasSubstr("no slot"));
    ExpectInvalid(transport.OpenReceive(Spec(self, self, 3, -8)).status(), HasSubstr("negative size"));
    ChannelSpec no_rounds = Spec(self, self, 3, 8);
    no_rounds.round = 0;
    ExpectInvalid(transport.OpenSend(no_rounds).status(), HasSubstr("1 or more messages a round"));
    return absl::OkStatus();
  });
}

TEST_P(TransportPairTest, EndOfAnotherRankIsRefused) {
  const ChannelSpec spec = Spec(RankId(0), last(), 3, 8);
  RunRanksOk([&](Transport& transport) {
    if (transport.rank() == last()) {
      ExpectInvalid(transport.OpenSend(spec).status(),
                    AllOf(HasSubstr(absl::StrCat("rank ", size() - 1, " opened the sending end")),
                          HasSubstr("is for rank 0"), HasSubstr("value3")));
    } else if (transport.rank() == RankId(0)) {
      ExpectInvalid(transport.OpenReceive(spec).status(),
                    AllOf(HasSubstr("rank 0 opened the receiving end"),
                          HasSubstr(absl::StrCat("is for rank ", size() - 1)), HasSubstr("value3")));
    }
    return absl::OkStatus();
  });
}

TEST_P(TransportPairTest, OpenedTwiceIsRefusedAlsoOnceTheEndIsGone) {
  const ChannelSpec spec = Spec(RankId(0), last(), 3, 8);
  RunRanksOk([&](Transport& transport) -> absl::Status {
    if (transport.rank() == RankId(0)) {
      ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> end, transport.OpenSend(spec));
      ExpectInvalid(transport.OpenSend(spec).status(), AllOf(HasSubstr("sending end"), HasSubstr("open already")));
      end.reset();
      ExpectInvalid(transport.OpenSend(spec).status(), AllOf(HasSubstr("sending end"), HasSubstr("open already")));
    } else if (transport.rank() == last()) {
      ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> end, transport.OpenReceive(spec));
      ExpectInvalid(transport.OpenReceive(spec).status(), AllOf(HasSubstr("receiving end"), HasSubstr("value3")));
    }
    return absl::OkStatus();
  });
}

// At the opening of the later end or with the first message, and then on both sides.
TEST_P(TransportPairTest, SpecsThatDifferAreRefusedNamingBoth) {
  const ChannelSpec sends = Spec(RankId(0), last(), 0, 4096, 2);
  std::vector<ChannelSpec> others(5, sends);
  others[0].bytes = 2048;
  others[1].slots = 5;
  others[2].name = "another";
  others[3].round = 8;
  others[4].bytes = 8192;
  for (const ChannelSpec& receives : others) {
    const std::vector<absl::Status> statuses = RunRanks([&](Transport& transport) -> absl::Status {
      if (transport.rank() == sends.source) return Stream(transport, {sends}, 10);
      return Stream(transport, {receives}, 10);
    });
    for (int rank : {0, size() - 1}) {
      ExpectInvalid(statuses[rank], AllOf(HasSubstr(ChannelToString(sends)), HasSubstr(ChannelToString(receives))));
    }
    MakeTransports();
  }
}

// Slots follow each other without a gap from an aligned start, and stay where they are.
template <typename End>
absl::Status CheckSlots(End& end, const ChannelSpec& spec) {
  char* const base = end.Slot(0);
  if (base == nullptr || reinterpret_cast<uintptr_t>(base) % 64 != 0) return absl::InternalError("not aligned");
  for (int64_t k = 0; k < 4 * spec.slots; ++k) {
    if (end.Slot(k) != base + (k % spec.slots) * spec.bytes) return absl::InternalError(absl::StrCat("slot of ", k));
  }
  return absl::OkStatus();
}

TEST_P(TransportPairTest, SlotsAreContiguousAlignedAndStable) {
  RunRanksOk([&](Transport& transport) -> absl::Status {
    int tag = 0;
    for (int64_t bytes : {0, 1, 4, 20, 64, 4100}) {
      const ChannelSpec spec = Spec(RankId(0), last(), tag++, bytes, 3);
      if (transport.rank() == spec.source) {
        ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> end, transport.OpenSend(spec));
        for (int64_t k = 0; k < 10; ++k) {
          RETURN_IF_ERROR(SendMessage(*end, spec, k));
          RETURN_IF_ERROR(CheckSlots(*end, spec));
        }
      } else if (transport.rank() == spec.destination) {
        ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> end, transport.OpenReceive(spec));
        for (int64_t k = 0; k < 10; ++k) {
          RETURN_IF_ERROR(CheckSlots(*end, spec));
          RETURN_IF_ERROR(ReceiveMessage(*end, spec, k));
        }
      }
    }
    return absl::OkStatus();
  });
}

TEST_P(TransportPairTest, MessagesAllocateNothing) {
  const ChannelSpec spec = Spec(RankId(0), last(), 0, 512, 2);
  RunRanksOk([&](Transport& transport) -> absl::Status {
    std::unique_ptr<SendEnd> send;
    std::unique_ptr<ReceiveEnd> receive;
    if (transport.rank() == spec.source) {
      ASSIGN_OR_RETURN(send, transport.OpenSend(spec));
    } else if (transport.rank() == spec.destination) {
      ASSIGN_OR_RETURN(receive, transport.OpenReceive(spec));
    }
    const int64_t before = AllocationsOfThisThread();
    for (int64_t k = 0; k < 1000; ++k) {
      if (send != nullptr) RETURN_IF_ERROR(SendMessage(*send, spec, k));
      if (receive != nullptr) RETURN_IF_ERROR(ReceiveMessage(*receive, spec, k));
      transport.Progress();
    }
    const int64_t allocations = AllocationsOfThisThread() - before;
    if (allocations != 0) return absl::InternalError(absl::StrCat(allocations, " allocations"));
    return absl::OkStatus();
  });
}

TEST(AllocationsTest, AreCounted) {
  const int64_t before = AllocationsOfThisThread();
  const std::string text = absl::StrCat("long enough to need memory of its own: ", before);
  EXPECT_GE(AllocationsOfThisThread(), before + 1) << text;
}

}  // namespace
}  // namespace pipeloom
