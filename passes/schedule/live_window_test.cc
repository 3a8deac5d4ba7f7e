#include "passes/schedule/live_window.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "passes/schedule/schedule_table.h"

namespace pipeloom {
namespace {

constexpr ActionKind kF = ActionKind::kForward;
constexpr ActionKind kB = ActionKind::kBackwardInput;
constexpr ActionKind kW = ActionKind::kBackwardWeight;

std::vector<Action> Actions(absl::string_view line) { return ParseSchedule(line)->actions[0]; }

// By the definition: from when until when each micro-batch lives, then every moment looked at on its own.
int BruteForce(const std::vector<Action>& actions, ActionKind first_use, ActionKind last_use, int group) {
  const auto when = [&](ActionKind part, int m) {
    for (int t = 0; t < static_cast<int>(actions.size()); ++t) {
      const Action& action = actions[t];
      const bool both = action.kind == ActionKind::kBackward && part != kF;
      if (action.chunk == ChunkId(0) && action.micro_batch == MicroBatchId(m) && (action.kind == part || both))
        return t;
    }
    return -1;
  };
  int micro_batches = 0;
  while (when(kF, micro_batches) >= 0) ++micro_batches;
  int window = 0;
  for (int t = 0; t < static_cast<int>(actions.size()); ++t) {
    int lowest = micro_batches;
    int highest = -1;
    for (int m = 0; m < micro_batches; ++m) {
      int last = m;
      while (last_use == kW && last + 1 < micro_batches && (last + 1) % group != 0) ++last;
      if (when(first_use, m) > t || t > when(last_use, last)) continue;
      lowest = std::min(lowest, m);
      highest = std::max(highest, m);
    }
    window = std::max(window, highest - lowest + 1);
  }
  return window;
}

// A random legal order of chunk 0's actions, with forwards of a chunk 1 between them.
std::vector<Action> RandomActions(std::mt19937& random, int micro_batches) {
  std::vector<bool> split(micro_batches);
  for (int m = 0; m < micro_batches; ++m) split[m] = random() % 2 == 0;
  std::vector<int> done(micro_batches, 0);  // parts of each micro-batch
  int next_weight = 0;
  std::vector<Action> actions;
  while (next_weight < micro_batches) {
    if (random() % 4 == 0) actions.push_back({kF, ChunkId(1), MicroBatchId(static_cast<int>(random() % 3))});
    const int m = static_cast<int>(random() % micro_batches);
    if (done[m] == 0) {
      actions.push_back({kF, ChunkId(0), MicroBatchId(m)});
      ++done[m];
    } else if (done[m] == 1 && split[m]) {
      actions.push_back({kB, ChunkId(0), MicroBatchId(m)});
      ++done[m];
    } else if (m == next_weight) {
      actions.push_back({split[m] ? kW : ActionKind::kBackward, ChunkId(0), MicroBatchId(m)});
      ++next_weight;
      done[m] = 3;
    }
  }
  return actions;
}

TEST(LiveWindow, AgreesWithBruteForceOnRandomOrders) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 400; ++trial) {
    const std::vector<Action> actions = RandomActions(random, 1 + static_cast<int>(random() % 9));
    for (int group = 1; group <= 5; ++group) {
      for (ActionKind first_use : {kF, kB, kW}) {
        for (ActionKind last_use : {kF, kB, kW}) {
          if (last_use < first_use) continue;
          EXPECT_EQ(LiveWindow(actions, ChunkId(0), first_use, last_use, group),
                    BruteForce(actions, first_use, last_use, group));
        }
      }
    }
  }
}

TEST(LiveWindow, OfNamedSchedulesIsAsTheFormulas) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 16; ++m) {
      const Schedule gpipe = *MakeSchedule("gpipe", p, m, 1);
      const Schedule one_f_one_b = *MakeSchedule("1f1b", p, m, 1);
      for (int r = 0; r < p; ++r) {
        EXPECT_EQ(LiveWindow(gpipe.actions[r], ChunkId(r), kF, kW, 1), m);
        EXPECT_EQ(LiveWindow(one_f_one_b.actions[r], ChunkId(r), kF, kW, 1), std::min(p - r, m));
        EXPECT_EQ(LiveWindow(one_f_one_b.actions[r], ChunkId(r), kF, kF, 1), 1);
        // Saved operand pairs: a group of them, from BW on.
        EXPECT_EQ(LiveWindow(one_f_one_b.actions[r], ChunkId(r), kB, kW, 4), std::min(4, m));
      }
    }
  }
}

TEST(LiveWindow, AGroupAddsItsSizeLessOne) {
  // Rank 0 of 1f1b on two ranks holds 2; in groups of 2 one more. The last group, of one micro-batch, is short.
  const std::vector<Action> actions = Actions("0F0 0F1 0BW0 0F2 0BW1 0F3 0BW2 0F4 0BW3 0BW4\n");
  EXPECT_EQ(LiveWindow(actions, ChunkId(0), kF, kW, 1), 2);
  EXPECT_EQ(LiveWindow(actions, ChunkId(0), kF, kW, 2), 3);
  EXPECT_EQ(LiveWindow(actions, ChunkId(0), kF, kW, 5), 5);
  EXPECT_EQ(LiveWindow(actions, ChunkId(0), kF, kW, 100), 5);
}

TEST(LiveWindow, CountsTheGapOfAMicroBatchThatIsGone) {
  // 1 is gone when 0 and 2 live, but slots by micro-batch number cannot be used for another one.
  EXPECT_EQ(LiveWindow(Actions("0F0 0F1 0B1 0F2 0B0 0B2 0W0 0W1 0W2\n"), ChunkId(0), kF, kB, 1), 3);
}

TEST(LiveWindow, IsZeroForAChunkThatIsNotThere) {
  EXPECT_EQ(LiveWindow(Actions("0F0 0BW0\n"), ChunkId(1), kF, kW, 1), 0);
}

TEST(LiveWindowDeathTest, AValueWithoutLastUseIsABug) {
  EXPECT_DEATH(LiveWindow(Actions("0F0 0F1\n"), ChunkId(0), kF, kW, 1), "never for the last time in W");
}

TEST(LastUsedBy, ReleasesAGroupAtItsEnd) {
  const auto range = [](ActionKind kind, int m, ActionKind last_use, int group, int micro_batches) {
    const MicroBatchRange used = LastUsedBy({kind, ChunkId(0), MicroBatchId(m)}, last_use, group, micro_batches);
    return std::make_pair(used.begin, used.end);
  };
  EXPECT_EQ(range(ActionKind::kBackward, 3, kW, 4, 10), std::make_pair(0, 4));
  EXPECT_EQ(range(ActionKind::kBackward, 2, kW, 4, 10), std::make_pair(0, 0));
  EXPECT_EQ(range(kW, 9, kW, 4, 10), std::make_pair(8, 10));
  EXPECT_EQ(range(kB, 9, kW, 4, 10), std::make_pair(0, 0));
  EXPECT_EQ(range(ActionKind::kBackward, 2, kB, 4, 10), std::make_pair(2, 3));
  EXPECT_EQ(range(kF, 2, kF, 4, 10), std::make_pair(2, 3));
}

}  // namespace
}  // namespace pipeloom
