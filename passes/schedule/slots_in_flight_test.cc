#include "passes/schedule/slots_in_flight.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "passes/schedule/schedule_table.h"
#include "passes/schedule/test_edges.h"

namespace pipeloom {
namespace {

constexpr ActionKind kF = ActionKind::kForward;
constexpr ActionKind kB = ActionKind::kBackwardInput;
constexpr ActionKind kW = ActionKind::kBackwardWeight;

TEST(SlotsInFlight, CountsFromTheStartOfMakingToTheEndOfTheLastUse) {
  // |0F0|0F1|0F2................|0BW0   |0BW1   |0BW2   |
  // ....|1F0|1F1|1F2|1BW0   |1BW1   |1BW2   ........
  const Simulation simulation = *Simulate(*ParseSchedule("0F0 0F1 0F2 0BW0 0BW1 0BW2\n1F0 1F1 1F2 1BW0 1BW1 1BW2\n"),
                                          ChainCosts(2, {1, 1, 1}, 0));
  // 0F1 is made while 1F0 runs; when 0F2 starts, 1F0 has just ended.
  EXPECT_EQ(SlotsInFlight(simulation, ForwardEdge(0, 1), kF, 1), 2);
  EXPECT_EQ(SlotsInFlight(simulation, ForwardEdge(0, 1), kB, 1), 3);
  // 1BW1 is made while 0BW0 runs; when 1BW2 starts, 0BW0 has just ended. In groups of 2 it is kept until 0BW1 ends.
  EXPECT_EQ(SlotsInFlight(simulation, BackwardEdge(1, 0), kB, 1), 2);
  EXPECT_EQ(SlotsInFlight(simulation, BackwardEdge(1, 0), kW, 2), 3);
}

TEST(SlotsInFlight, Of1f1bBetweenNeighbours) {
  for (int p = 2; p <= 8; ++p) {
    for (int m = 1; m <= 16; ++m) {
      const Simulation simulation = *Simulate(*MakeSchedule("1f1b", p, m, 1), ChainCosts(p, {1, 1, 1}, 0));
      for (int r = 0; r + 1 < p; ++r) {
        EXPECT_EQ(SlotsInFlight(simulation, ForwardEdge(r, r + 1), kB, 1), std::min(p - r, m)) << p << m << r;
        EXPECT_EQ(SlotsInFlight(simulation, BackwardEdge(r + 1, r), kB, 1), std::min(2, m)) << p << m << r;
      }
    }
  }
}

TEST(SlotsInFlight, AnEdgeThatSkipsStagesHoldsWhatItsSenderIsAhead) {
  ScheduleCosts costs = ChainCosts(4, {1, 1, 1}, 0);
  costs.edges.push_back({ForwardEdge(0, 3), 0});
  const Simulation simulation = *Simulate(*MakeSchedule("1f1b", 4, 8, 1), costs);
  // 0F0 to 0F3 start at 0 to 3, 3F0 ends at 4.
  EXPECT_EQ(SlotsInFlight(simulation, ForwardEdge(0, 3), kF, 1), 4);
}

TEST(SlotsInFlightDeathTest, SlotsThatAreNeverReleasedAreABug) {
  const Simulation simulation = *Simulate(*ParseSchedule("0F0\n1F0\n"), ChainCosts(2, {1, 1, 1}, 0));
  EXPECT_DEATH(SlotsInFlight(simulation, ForwardEdge(0, 1), kW, 1), "forward edge 0 -> 1 is never released");
}

}  // namespace
}  // namespace pipeloom
