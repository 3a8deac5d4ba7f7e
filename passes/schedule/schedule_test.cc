#include "passes/schedule/schedule.h"

#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/schedule/lower_communication.h"
#include "passes/schedule/schedule_table.h"
#include "passes/schedule/test_edges.h"

namespace pipeloom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ScheduleText, ReadsShapeAndPlacementFromTheGrid) {
  const absl::StatusOr<Schedule> v_placement = ParseSchedule("0F0 3F0 0F1 3F1\n\n1F0 2F0 1F1 2F1\n");
  ASSERT_TRUE(v_placement.ok()) << v_placement.status();
  EXPECT_EQ(v_placement->ranks(), 3);
  EXPECT_EQ(v_placement->micro_batches, 2);
  EXPECT_THAT(v_placement->placement, ElementsAre(RankId(0), RankId(2), RankId(2), RankId(0)));
  EXPECT_THAT(v_placement->actions[1], ElementsAre());
  EXPECT_THAT(v_placement->actions[2], ElementsAre(Action{ActionKind::kForward, ChunkId(1), MicroBatchId(0)},
                                                   Action{ActionKind::kForward, ChunkId(2), MicroBatchId(0)},
                                                   Action{ActionKind::kForward, ChunkId(1), MicroBatchId(1)},
                                                   Action{ActionKind::kForward, ChunkId(2), MicroBatchId(1)}));
  EXPECT_EQ(ScheduleToString(*v_placement), "0F0 3F0 0F1 3F1\n\n1F0 2F0 1F1 2F1\n");
}

TEST(ScheduleText, ParsesWhatItPrints) {
  for (const ScheduleInfo& info : ScheduleTable()) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (int micro_batches = 1; micro_batches <= 16; ++micro_batches) {
        const Schedule compute = *MakeSchedule(info.name, ranks, micro_batches, 1);
        for (const Schedule& schedule : {compute, *LowerCommunication(compute, ChainEdges(ranks))}) {
          const absl::StatusOr<Schedule> parsed = ParseSchedule(ScheduleToString(schedule));
          ASSERT_TRUE(parsed.ok()) << parsed.status();
          EXPECT_TRUE(*parsed == schedule) << ScheduleToString(schedule);
        }
      }
    }
  }
}

TEST(ScheduleText, DamagedTextIsRefusedOrMeansWhatItPrints) {
  const Schedule compute = *MakeSchedule("1f1b", 3, 4, 1);
  const std::string text = ScheduleToString(*LowerCommunication(compute, ChainEdges(3)));
  const std::string characters = "0123456789FBW_ \nSEND";
  std::mt19937 random(7);
  int accepted = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    std::string damaged = text;
    for (int damages = 1 + static_cast<int>(random() % 3); damages > 0; --damages) {
      const size_t place = random() % damaged.size();
      if (random() % 2 == 0) {
        damaged[place] = characters[random() % characters.size()];
      } else {
        damaged.erase(place, 1 + random() % 3);
      }
    }
    const absl::StatusOr<Schedule> parsed = ParseSchedule(damaged);
    if (!parsed.ok()) {
      EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ++accepted;
    const absl::StatusOr<Schedule> again = ParseSchedule(ScheduleToString(*parsed));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(*again == *parsed) << damaged;
  }
  EXPECT_GT(accepted, 50);
  EXPECT_LT(accepted, 4950);
}

TEST(ScheduleText, RefusesBadGrids) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"0F0\n1F0 1X0\n", "rank 1: \"1X0\" is no action"},
      {"0F0\n0F1\n", "rank 1, 0F1: chunk 0 stands on rank 0 as well"},
      {"0F0\n2F0\n", "chunk 1 has no action, but chunk 2 has"},
      {"1F0\n", "chunk 0 has no action, but chunk 1 has"},
      {"0F0 0F2\n", "micro-batch 1 has no action, but micro-batch 2 has"},
      {"2147483647F2147483647\n", "chunk 0 has no action"},
      {"", "without any action"},
      {"\n\n", "without any action"},
      {"STEP\n", "without any action"},
  };
  for (const auto& bad : cases) {
    const absl::StatusOr<Schedule> parsed = ParseSchedule(bad.text);
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << bad.text;
    EXPECT_THAT(parsed.status().message(), HasSubstr(bad.message));
  }
}

TEST(Schedule, KnowsWhatKindItIs) {
  const Schedule inference = *MakeSchedule("forward", 2, 2, 1);
  const Schedule training = *MakeSchedule("1f1b", 2, 2, 1);
  EXPECT_FALSE(Trains(inference));
  EXPECT_TRUE(Trains(training));
  EXPECT_FALSE(IsLowered(training));
  EXPECT_TRUE(IsLowered(*LowerCommunication(training, {})));
  EXPECT_FALSE(Trains(*LowerCommunication(inference, {})));
}

}  // namespace
}  // namespace pipeloom
