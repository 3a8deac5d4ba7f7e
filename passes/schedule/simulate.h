#ifndef PASSES_SCHEDULE_SIMULATE_H_
#define PASSES_SCHEDULE_SIMULATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "passes/schedule/communication.h"

namespace pipeloom {

// One chunk's work for one micro-batch. Times in any one unit; BW takes input_gradient + weight_gradient.
struct ChunkCosts {
  double forward = 0;
  double input_gradient = 0;
  double weight_gradient = 0;
  double activations = 1;  // what is kept from F until W (until F ends, in inference), in any one unit
};

// From the end of the work that makes an edge's values until they can be used on another rank, while both ranks
// compute.
struct EdgeCosts {
  CommunicationEdge edge;
  double time = 0;
};

struct ScheduleCosts {
  std::vector<ChunkCosts> chunks;  // one a chunk
  std::vector<EdgeCosts> edges;    // all edges between chunks, those within a rank included
};

struct TimedAction {
  Action action;
  double start = 0;
  double end = 0;
};

struct Simulation {
  double step_time = 0;                             // until the last rank has computed
  std::vector<double> bubble;                       // of each rank, step_time less its compute time
  std::vector<double> peak_activations;             // of each rank, in the unit of ChunkCosts::activations
  std::vector<std::vector<TimedAction>> timelines;  // of each rank, compute actions in order
};

// Runs the compute actions, lowered (a gradient leaves after its B) or not (after its BW), each as soon as its rank is
// free and its values are there; slots never run out, and the end of the step costs nothing. InvalidArgument for a
// schedule that VerifySchedule refuses with these edges, for costs of another number of chunks, and for negative times.
absl::StatusOr<Simulation> Simulate(const Schedule& schedule, const ScheduleCosts& costs);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_SIMULATE_H_
