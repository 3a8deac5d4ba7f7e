#include "passes/schedule/simulate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/schedule/lower_communication.h"
#include "passes/schedule/schedule_table.h"
#include "passes/schedule/test_edges.h"
#include "passes/schedule/time_chart.h"

namespace pipeloom {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

// Small whole numbers, so that every time is exact.
constexpr ChunkCosts kCosts[] = {{1, 1, 1}, {2, 3, 5}, {5, 1, 2}, {1, 7, 0}, {4, 0, 9}};

TEST(Simulate, IsExactlyAsTheFormulas) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 16; ++m) {
      for (const ChunkCosts& cost : kCosts) {
        const double f = cost.forward;
        const double b = cost.input_gradient + cost.weight_gradient;
        for (const char* name : {"gpipe", "1f1b"}) {
          const Schedule schedule = *MakeSchedule(name, p, m, 1);
          const absl::StatusOr<Simulation> simulation = Simulate(schedule, ChainCosts(p, cost, 0));
          ASSERT_TRUE(simulation.ok()) << simulation.status();
          EXPECT_EQ(simulation->step_time, (m + p - 1) * (f + b));
          EXPECT_THAT(simulation->bubble, Each((p - 1) * (f + b)));
          ASSERT_EQ(simulation->peak_activations.size(), p);
          for (int r = 0; r < p; ++r) {
            EXPECT_EQ(simulation->peak_activations[r], name[0] == 'g' ? m : std::min(p - r, m));
          }
        }
        const absl::StatusOr<Simulation> forward = Simulate(*MakeSchedule("forward", p, m, 1), ChainCosts(p, cost, 0));
        ASSERT_TRUE(forward.ok()) << forward.status();
        EXPECT_EQ(forward->step_time, (m + p - 1) * f);
        EXPECT_THAT(forward->bubble, Each((p - 1) * f));
        EXPECT_THAT(forward->peak_activations, Each(1));
      }
    }
  }
}

// The costs of each of a rank's `chunks` equal chunks, so that its whole share costs `share`; all numbers stay exact.
ScheduleCosts EqualChunks(int ranks, int chunks, const ChunkCosts& share) {
  const double n = chunks;
  const ChunkCosts chunk{share.forward / n, share.input_gradient / n, share.weight_gradient / n, 1 / n};
  return ChainCosts(ranks * chunks, chunk, 0);
}

TEST(Simulate, TheTablesFormulasAreRight) {
  for (const ScheduleInfo& info : ScheduleTable()) {
    for (int p = 1; p <= 8; ++p) {
      for (int v : {1, 2, 4}) {
        for (int m = 1; m <= 16; ++m) {
          const ScheduleShape shape{p, m, v};
          if (!info.precondition(shape).ok()) continue;
          SCOPED_TRACE(absl::StrCat(info.name, " ", p, " ", m, " ", v));
          const bool exact = v == 1 || m % p == 0;
          const int missing = (p - m % p) % p;
          for (const ChunkCosts& cost : kCosts) {
            const ShareTimes times{cost.forward, cost.input_gradient, cost.weight_gradient};
            const double share = info.trains ? cost.forward + cost.input_gradient + cost.weight_gradient : cost.forward;
            const absl::StatusOr<Simulation> simulation =
                Simulate(*MakeSchedule(info.name, p, m, v), EqualChunks(p, v, cost));
            ASSERT_TRUE(simulation.ok()) << simulation.status();
            const double bubble = info.bubble(shape, times);
            EXPECT_THAT(simulation->bubble, Each(Ge(bubble)));
            EXPECT_THAT(simulation->bubble, Each(Le(exact ? bubble : bubble + missing * share)));
            for (int r = 0; r < p; ++r) {
              const double peak = info.peak_activations(shape, RankId(r));
              EXPECT_LE(simulation->peak_activations[r], peak);
              if (exact) {
                EXPECT_EQ(simulation->peak_activations[r], peak);
              }
            }
          }
        }
      }
    }
  }
}

// The figures of one rank's share of 1 for F, B and W each (ideal: 24).
TEST(Simulate, InterleavedFourRanksEightMicroBatches) {
  EXPECT_EQ(Simulate(*MakeSchedule("interleaved", 4, 8, 2), EqualChunks(4, 2, {1, 1, 1}))->step_time, 28.5);
  EXPECT_EQ(Simulate(*MakeSchedule("interleaved", 4, 8, 4), EqualChunks(4, 4, {1, 1, 1}))->step_time, 26.25);
}

TEST(Simulate, LoweringTakesWOutOfTheBubbleOfInterleaved) {
  for (int p = 1; p <= 8; ++p) {
    for (int v : {2, 4}) {
      for (int m = p; m <= 16; m += p) {
        const Schedule schedule = *LowerCommunication(*MakeSchedule("interleaved", p, m, v), ChainEdges(p * v));
        const Simulation simulation = *Simulate(schedule, EqualChunks(p, v, {1, 1, 1}));
        EXPECT_THAT(simulation.bubble, Each(2.0 * (p - 1) / v)) << p << " " << m << " " << v;
      }
    }
  }
}

TEST(Simulate, InterleavedPeakOfTheFirstRankIsAsTheFormula) {
  for (int p = 1; p <= 8; ++p) {
    for (int v : {2, 4}) {
      const Simulation simulation = *Simulate(*MakeSchedule("interleaved", p, 4 * p, v), EqualChunks(p, v, {1, 1, 1}));
      EXPECT_DOUBLE_EQ(simulation.peak_activations[0], (1 + (p - 1.0) / (p * v)) * p) << p << " " << v;
    }
  }
}

TEST(Simulate, FourRanksEightMicroBatches) {
  for (const char* name : {"gpipe", "1f1b"}) {
    EXPECT_EQ(Simulate(*MakeSchedule(name, 4, 8, 1), ChainCosts(4, {1, 1, 1}, 0))->step_time, 33);
  }
}

// Lowering sends a gradient before its W, so that no rank waits for another's W.
TEST(Simulate, LoweringTakesWOutOfTheBubble) {
  for (const char* name : {"gpipe", "1f1b"}) {
    for (int p = 1; p <= 8; ++p) {
      for (int m = 1; m <= 16; ++m) {
        const Schedule schedule = *LowerCommunication(*MakeSchedule(name, p, m, 1), ChainEdges(p));
        for (const ChunkCosts& cost : kCosts) {
          const absl::StatusOr<Simulation> simulation = Simulate(schedule, ChainCosts(p, cost, 0));
          ASSERT_TRUE(simulation.ok()) << simulation.status();
          EXPECT_THAT(simulation->bubble, Each((p - 1) * (cost.forward + cost.input_gradient)));
          for (int r = 0; r < p; ++r) {
            EXPECT_EQ(simulation->peak_activations[r], name[0] == 'g' ? m : std::min(p - r, m));
          }
        }
      }
    }
  }
}

TEST(Simulate, CommunicationDelaysTheReceiverOnly) {
  // F0 0..1, its value there at 1.5, 1F0 1.5..2.5, 1BW0 2.5..4.5, the gradient there at 5, 0BW0 5..7.
  const Simulation simulation = *Simulate(*ParseSchedule("0F0 0BW0\n1F0 1BW0\n"), ChainCosts(2, {1, 1, 1}, 0.5));
  EXPECT_EQ(simulation.step_time, 7);
  EXPECT_THAT(simulation.bubble, ElementsAre(4, 4));
  EXPECT_EQ(simulation.timelines[1][0].start, 1.5);
  EXPECT_EQ(simulation.timelines[1][1].end, 4.5);
  EXPECT_EQ(simulation.timelines[0][1].start, 5);
}

TEST(Simulate, ChunksOfOneRankPayNoCommunication) {
  EXPECT_EQ(Simulate(*ParseSchedule("0F0 1F0 1BW0 0BW0\n"), ChainCosts(2, {1, 1, 1}, 10))->step_time, 6);
}

TEST(Simulate, ASplitBackwardSendsItsGradientBeforeW) {
  // Gradient there after 1B0 at 3, so that 0B0 runs beside 1W0.
  const Simulation simulation = *Simulate(*ParseSchedule("0F0 0B0 0W0\n1F0 1B0 1W0\n"), ChainCosts(2, {1, 1, 1}, 0));
  EXPECT_EQ(simulation.step_time, 5);
  EXPECT_THAT(simulation.bubble, ElementsAre(2, 2));
}

TEST(Simulate, ActivationsAreHeldUntilW) {
  const Simulation simulation =
      *Simulate(*ParseSchedule("0F0 0B0 0F1 0B1 0W0 0F2 0B2 0W1 0W2\n"), ChainCosts(1, {1, 1, 1}, 0));
  EXPECT_THAT(simulation.peak_activations, ElementsAre(2));
}

TEST(Simulate, ActivationsWeighAsTheirChunkDoes) {
  ScheduleCosts costs = ChainCosts(2, {1, 1, 1}, 0);
  costs.chunks[0].activations = 0.25;
  costs.chunks[1].activations = 4;
  const Simulation simulation = *Simulate(*ParseSchedule("0F0 0F1 1F0 1BW0 0BW0 1F1 1BW1 0BW1\n"), costs);
  EXPECT_THAT(simulation.peak_activations, ElementsAre(4.5));
}

TEST(Simulate, SkipEdgesAreWaitedFor) {
  ScheduleCosts costs = ChainCosts(3, {1, 1, 1}, 0);
  costs.edges.push_back({ForwardEdge(0, 2), 6});
  EXPECT_EQ(Simulate(*ParseSchedule("0F0\n1F0\n2F0\n"), costs)->step_time, 8);
}

TEST(Simulate, RefusesBadCosts) {
  const Schedule schedule = *MakeSchedule("1f1b", 2, 2, 1);
  EXPECT_THAT(Simulate(schedule, ChainCosts(3, {1, 1, 1}, 0)).status().message(),
              HasSubstr("costs of 3 chunks for a schedule of 2"));
  EXPECT_THAT(Simulate(schedule, ChainCosts(2, {1, -1, 1}, 0)).status().message(),
              HasSubstr("chunk 0 costs F 1, B -1"));
  EXPECT_THAT(Simulate(schedule, ChainCosts(2, {1, 1, 1}, -2)).status().message(),
              HasSubstr("forward edge 0 -> 1 takes -2"));
}

TEST(Simulate, RefusesAScheduleThatCannotRun) {
  const absl::Status status = Simulate(*ParseSchedule("0BW0 0F0\n1F0 1BW0\n"), ChainCosts(2, {1, 1, 1}, 0)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("rank 0, 0BW0: stands before 0F0"));
}

TEST(TimeChart, Of1f1b) {
  EXPECT_EQ(TimeChart(*Simulate(*MakeSchedule("1f1b", 3, 4, 1), ChainCosts(3, {1, 1, 1}, 0)), 72),
            "|0F0|0F1|0F2................|0BW0   |0F3|0BW1   ....|0BW2   ....|0BW3   |\n"
            "....|1F0|1F1........|1BW0   |1F2|1BW1   |1F3|1BW2   ....|1BW3   ........|\n"
            "........|2F0|2BW0   |2F1|2BW1   |2F2|2BW2   |2F3|2BW3   ................|\n");
}

TEST(TimeChart, OfInterleaved) {
  EXPECT_EQ(
      TimeChart(*Simulate(*MakeSchedule("interleaved", 2, 4, 2), ChainCosts(4, {1, 1, 1}, 0)), 108),
      "|0F0|0F1|2F0|2F1|0F2....|2BW0   |0F3|2BW1   |2F2|0BW0   |2F3|0BW1   ....|2BW2   ....|2BW3   |0BW2   |0BW3   |\n"
      "....|1F0|1F1|3F0|3BW0   |3F1|3BW1   |1F2|1BW0   |1F3|1BW1   |3F2|3BW2   |3F3|3BW3   |1BW2   |1BW3   "
      "........|\n");
}

TEST(TimeChart, CutsTextShort) {
  EXPECT_EQ(TimeChart(*Simulate(*ParseSchedule("0F0 0BW0\n"), ChainCosts(1, {1, 1, 1}, 0)), 6), "|0|0BW|\n");
}

TEST(TimeChart, OfWorkThatTakesNoTime) {
  EXPECT_EQ(TimeChart(*Simulate(*ParseSchedule("0F0 0BW0\n"), ChainCosts(1, {0, 0, 0}, 0)), 4), "....|\n");
}

}  // namespace
}  // namespace pipeloom
