#include "passes/schedule/simulate.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/schedule/verify_schedule.h"

namespace pipeloom {
namespace {

constexpr double kNotYet = std::numeric_limits<double>::infinity();

absl::Status CheckCosts(const Schedule& schedule, const ScheduleCosts& costs) {
  if (static_cast<int>(costs.chunks.size()) != schedule.chunks()) {
    return absl::InvalidArgumentError(absl::StrCat("costs of ", costs.chunks.size(), " chunks for a schedule of ",
                                                   schedule.chunks(), "; give one ChunkCosts a chunk"));
  }
  for (int chunk = 0; chunk < schedule.chunks(); ++chunk) {
    const ChunkCosts& cost = costs.chunks[chunk];
    if (cost.forward >= 0 && cost.input_gradient >= 0 && cost.weight_gradient >= 0 && cost.activations >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("chunk ", chunk, " costs F ", cost.forward, ", B ",
                                                   cost.input_gradient, ", W ", cost.weight_gradient, ", activations ",
                                                   cost.activations, "; give none below 0"));
  }
  std::vector<CommunicationEdge> edges;
  for (const EdgeCosts& cost : costs.edges) {
    if (!(cost.time >= 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(EdgeToString(cost.edge), " takes ", cost.time, "; give a time that is not below 0"));
    }
    edges.push_back(cost.edge);
  }
  return VerifySchedule(schedule, edges, {});
}

// When each rank runs each compute action.
class Timing {
 public:
  Timing(const Schedule& schedule, const ScheduleCosts& costs)
      : schedule_(schedule),
        costs_(costs),
        edges_into_(schedule.chunks()),
        made_(2, Times(schedule.chunks(), std::vector<double>(schedule.micro_batches, kNotYet))),
        timelines_(schedule.ranks()) {
    for (const EdgeCosts& cost : costs.edges) edges_into_[cost.edge.destination.value()].push_back(&cost);
  }

  std::vector<std::vector<TimedAction>> Run() {
    std::vector<size_t> next(schedule_.ranks(), 0);
    bool moved = true;
    while (moved) {
      moved = false;
      for (int rank = 0; rank < schedule_.ranks(); ++rank) {
        const std::vector<Action>& actions = schedule_.actions[rank];
        while (next[rank] < actions.size() && RunNow(actions[next[rank]], timelines_[rank])) {
          ++next[rank];
          moved = true;
        }
      }
    }
    return timelines_;
  }

 private:
  using Times = std::vector<std::vector<double>>;  // by chunk and micro-batch

  double& Made(bool forward, ChunkId chunk, MicroBatchId micro_batch) {
    return made_[forward ? 1 : 0][chunk.value()][micro_batch.value()];
  }

  // False, with nothing done, while the time of one of the action's values is not known yet.
  bool RunNow(const Action& action, std::vector<TimedAction>& timeline) {
    if (!IsCompute(action.kind)) return true;
    double start = timeline.empty() ? 0 : timeline.back().end;
    for (const EdgeCosts* cost : edges_into_[action.chunk.value()]) {
      if (!Performs(action.kind, KindsOf(cost->edge.forward).part)) continue;
      const double travel = CrossesRanks(schedule_, cost->edge) ? cost->time : 0;
      start = std::max(start, Made(cost->edge.forward, cost->edge.source, action.micro_batch) + travel);
    }
    if (start == kNotYet) return false;
    const double end = start + Duration(action);
    for (bool forward : {true, false}) {
      if (Performs(action.kind, KindsOf(forward).part)) Made(forward, action.chunk, action.micro_batch) = end;
    }
    timeline.push_back({action, start, end});
    return true;
  }

  double Duration(const Action& action) const {
    const ChunkCosts& cost = costs_.chunks[action.chunk.value()];
    return (Performs(action.kind, ActionKind::kForward) ? cost.forward : 0) +
           (Performs(action.kind, ActionKind::kBackwardInput) ? cost.input_gradient : 0) +
           (Performs(action.kind, ActionKind::kBackwardWeight) ? cost.weight_gradient : 0);
  }

  const Schedule& schedule_;
  const ScheduleCosts& costs_;
  std::vector<std::vector<const EdgeCosts*>> edges_into_;  // each chunk
  std::vector<Times> made_;                                // by direction: when the boundary values are made
  std::vector<std::vector<TimedAction>> timelines_;
};

double PeakActivations(const std::vector<Action>& actions, const std::vector<ChunkCosts>& costs, bool trains) {
  const ActionKind last_use = trains ? ActionKind::kBackwardWeight : ActionKind::kForward;
  double held = 0;
  double peak = 0;
  for (const Action& action : actions) {
    const double activations = costs[action.chunk.value()].activations;
    if (Performs(action.kind, ActionKind::kForward)) held += activations;
    peak = std::max(peak, held);
    if (Performs(action.kind, last_use)) held -= activations;
  }
  return peak;
}

}  // namespace

absl::StatusOr<Simulation> Simulate(const Schedule& schedule, const ScheduleCosts& costs) {
  RETURN_IF_ERROR(CheckCosts(schedule, costs));
  Simulation simulation;
  simulation.timelines = Timing(schedule, costs).Run();
  for (const std::vector<TimedAction>& timeline : simulation.timelines) {
    if (!timeline.empty()) simulation.step_time = std::max(simulation.step_time, timeline.back().end);
  }
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    double busy = 0;
    for (const TimedAction& timed : simulation.timelines[rank]) busy += timed.end - timed.start;
    simulation.bubble.push_back(simulation.step_time - busy);
    simulation.peak_activations.push_back(PeakActivations(schedule.actions[rank], costs.chunks, Trains(schedule)));
  }
  return simulation;
}

}  // namespace pipeloom
