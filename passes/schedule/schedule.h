#ifndef PASSES_SCHEDULE_SCHEDULE_H_
#define PASSES_SCHEDULE_SCHEDULE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/base/ids.h"
#include "passes/schedule/action.h"

namespace pipeloom {

// What a generator works from; each at least 1.
struct ScheduleShape {
  int ranks = 1;
  int micro_batches = 1;
  int chunks_per_rank = 1;

  int chunks() const { return ranks * chunks_per_rank; }
};

// One step's work of all ranks. A generator fills in compute actions only; LowerCommunication adds the rest.
struct Schedule {
  int micro_batches = 0;
  std::vector<RankId> placement;             // the rank of each chunk
  std::vector<std::vector<Action>> actions;  // of each rank, in order of execution

  int ranks() const { return static_cast<int>(actions.size()); }
  int chunks() const { return static_cast<int>(placement.size()); }
  RankId rank_of(ChunkId chunk) const { return placement[chunk.value()]; }

  friend bool operator==(const Schedule& a, const Schedule& b) {
    return a.micro_batches == b.micro_batches && a.placement == b.placement && a.actions == b.actions;
  }
};

// Whether the step has a backward part; false for inference.
bool Trains(const Schedule& schedule);

// Whether `schedule` has actions other than compute.
bool IsLowered(const Schedule& schedule);

// A grid, one line a rank, each ended by a newline:
//   0F0 0F1 0BW0 0F2 0BW1 0BW2
//   1F0 1BW0 1F1 1BW1 1F2 1BW2
std::string ScheduleToString(const Schedule& schedule);

// Exact inverse of ScheduleToString for every schedule in which each chunk and each micro-batch occurs: a chunk is
// placed on the rank in whose line it stands. InvalidArgument, naming the rank and the text, for what is no action, for
// a chunk on two ranks, and for a chunk or micro-batch left out.
absl::StatusOr<Schedule> ParseSchedule(absl::string_view text);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_SCHEDULE_H_
