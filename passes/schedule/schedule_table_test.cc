#include "passes/schedule/schedule_table.h"

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

using ::testing::HasSubstr;

std::string Grid(absl::string_view name, int ranks, int micro_batches) {
  const absl::StatusOr<Schedule> schedule = MakeSchedule(name, ranks, micro_batches, 1);
  return schedule.ok() ? ScheduleToString(*schedule) : std::string(schedule.status().message());
}

absl::StatusOr<std::string> InterleavedGrid(int ranks, int micro_batches, int chunks_per_rank) {
  ASSIGN_OR_RETURN(const Schedule schedule, MakeSchedule("interleaved", ranks, micro_batches, chunks_per_rank));
  return ScheduleToString(schedule);
}

TEST(Generators, OneForwardOneBackward) {
  EXPECT_EQ(Grid("1f1b", 3, 4),
            "0F0 0F1 0F2 0BW0 0F3 0BW1 0BW2 0BW3\n"
            "1F0 1F1 1BW0 1F2 1BW1 1F3 1BW2 1BW3\n"
            "2F0 2BW0 2F1 2BW1 2F2 2BW2 2F3 2BW3\n");
  EXPECT_EQ(Grid("1f1b", 2, 4),
            "0F0 0F1 0BW0 0F2 0BW1 0F3 0BW2 0BW3\n"
            "1F0 1BW0 1F1 1BW1 1F2 1BW2 1F3 1BW3\n");
}

TEST(Generators, OneForwardOneBackwardWithFewerMicroBatchesThanRanks) {
  EXPECT_EQ(Grid("1f1b", 4, 2),
            "0F0 0F1 0BW0 0BW1\n"
            "1F0 1F1 1BW0 1BW1\n"
            "2F0 2F1 2BW0 2BW1\n"
            "3F0 3BW0 3F1 3BW1\n");
  EXPECT_EQ(Grid("1f1b", 2, 1), "0F0 0BW0\n1F0 1BW0\n");
}

TEST(Generators, OneRankHoldsOneMicroBatchUnder1f1b) { EXPECT_EQ(Grid("1f1b", 1, 3), "0F0 0BW0 0F1 0BW1 0F2 0BW2\n"); }

TEST(Generators, Gpipe) {
  EXPECT_EQ(Grid("gpipe", 3, 4),
            "0F0 0F1 0F2 0F3 0BW0 0BW1 0BW2 0BW3\n"
            "1F0 1F1 1F2 1F3 1BW0 1BW1 1BW2 1BW3\n"
            "2F0 2F1 2F2 2F3 2BW0 2BW1 2BW2 2BW3\n");
}

TEST(Generators, Interleaved) {
  EXPECT_EQ(*InterleavedGrid(2, 4, 2),
            "0F0 0F1 2F0 2F1 0F2 2BW0 0F3 2BW1 2F2 0BW0 2F3 0BW1 2BW2 2BW3 0BW2 0BW3\n"
            "1F0 1F1 3F0 3BW0 3F1 3BW1 1F2 1BW0 1F3 1BW1 3F2 3BW2 3F3 3BW3 1BW2 1BW3\n");
}

TEST(Generators, InterleavedLeavesOutWhatAShortGroupDoesNotHave) {
  EXPECT_EQ(*InterleavedGrid(2, 3, 2),
            "0F0 0F1 2F0 2F1 0F2 2BW0 2BW1 2F2 0BW0 0BW1 2BW2 0BW2\n"
            "1F0 1F1 3F0 3BW0 3F1 3BW1 1F2 1BW0 1BW1 3F2 3BW2 1BW2\n");
  EXPECT_EQ(*InterleavedGrid(3, 1, 2), "0F0 3F0 3BW0 0BW0\n1F0 4F0 4BW0 1BW0\n2F0 5F0 5BW0 2BW0\n");
}

TEST(Generators, InterleavedWithOneChunkARankIs1f1b) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (int micro_batches = 1; micro_batches <= 8; ++micro_batches) {
      EXPECT_EQ(Grid("interleaved", ranks, micro_batches), Grid("1f1b", ranks, micro_batches));
    }
  }
}

TEST(Generators, ForwardOverSeveralChunks) {
  EXPECT_EQ(ScheduleToString(*MakeSchedule("forward", 2, 3, 2)), "0F0 0F1 2F0 2F1 0F2 2F2\n1F0 1F1 3F0 3F1 1F2 3F2\n");
}

TEST(Generators, Forward) { EXPECT_EQ(Grid("forward", 2, 3), "0F0 0F1 0F2\n1F0 1F1 1F2\n"); }

TEST(MakeSchedule, PlacesEachChunkOnItsRank) {
  for (const ScheduleInfo& info : ScheduleTable()) {
    const absl::StatusOr<Schedule> schedule = MakeSchedule(info.name, 5, 2, 1);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ(schedule->micro_batches, 2);
    EXPECT_EQ(schedule->ranks(), 5);
    ASSERT_EQ(schedule->chunks(), 5);
    for (int chunk = 0; chunk < 5; ++chunk) EXPECT_EQ(schedule->rank_of(ChunkId(chunk)), RankId(chunk));
  }
}

TEST(MakeSchedule, NamesTheNearestFirst) {
  const absl::Status misspelled = MakeSchedule("gpip", 2, 2, 1).status();
  EXPECT_EQ(misspelled.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(misspelled.message(), "no schedule is named \"gpip\"; choose from gpipe, 1f1b, forward, interleaved");
  EXPECT_EQ(FindSchedule("forwards").status().message(),
            "no schedule is named \"forwards\"; choose from forward, gpipe, 1f1b, interleaved");
}

TEST(MakeSchedule, FindsEachByItsName) {
  for (const ScheduleInfo& info : ScheduleTable()) {
    const absl::StatusOr<const ScheduleInfo*> found = FindSchedule(info.name);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, &info);
  }
}

TEST(MakeSchedule, RefusesCountsBelowOne) {
  for (const auto& [ranks, micro_batches, chunks] :
       {std::tuple(0, 1, 1), std::tuple(1, 0, 1), std::tuple(1, 1, 0), std::tuple(-3, 4, 1), std::tuple(2, -1, 1)}) {
    const absl::Status status = MakeSchedule("1f1b", ranks, micro_batches, chunks).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), absl::StrCat("schedule 1f1b over ", ranks, " ranks, ", micro_batches,
                                             " micro-batches and ", chunks, " chunks a rank; give at least 1 of each"));
  }
}

TEST(MakeSchedule, RefusesMoreThanCanBeMade) {
  EXPECT_TRUE(MakeSchedule("gpipe", 2, 1000, 1).ok());
  for (const auto& [ranks, micro_batches] :
       {std::tuple(1, (1 << 20) + 1), std::tuple(2, 1 << 20), std::tuple(2147483647, 2147483647)}) {
    const absl::Status status = MakeSchedule("1f1b", ranks, micro_batches, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), absl::StrCat("schedule 1f1b over ", ranks, " ranks, ", micro_batches,
                                             " micro-batches and 1 chunks a rank; their product is at most 1048576, "
                                             "give fewer micro-batches"));
  }
}

TEST(MakeSchedule, RefusesSeveralChunksOnARank) {
  for (const char* name : {"gpipe", "1f1b"}) {
    const absl::Status status = MakeSchedule(name, 2, 4, 2).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("schedule ", name, ": runs 1 chunk a rank, got 2")));
  }
}

}  // namespace
}  // namespace pipeloom
