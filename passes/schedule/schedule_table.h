#ifndef PASSES_SCHEDULE_SCHEDULE_TABLE_H_
#define PASSES_SCHEDULE_SCHEDULE_TABLE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "passes/schedule/schedule.h"

namespace pipeloom {

// Times of one rank's whole share of the network for one micro-batch, in any one unit.
struct ShareTimes {
  double forward = 0;
  double input_gradient = 0;
  double weight_gradient = 0;
};

// A row of the table: all that the rest of the system knows about one schedule.
struct ScheduleInfo {
  absl::string_view name;
  bool trains;  // has a backward part
  // Compute actions of one rank, in order.
  std::vector<Action> (*generate)(const ScheduleShape& shape, RankId rank);
  // The rank of each of the shape.chunks() chunks.
  RankId (*place)(const ScheduleShape& shape, ChunkId chunk);
  // InvalidArgument, saying what to give, for a shape that the schedule cannot run.
  absl::Status (*precondition)(const ScheduleShape& shape);
  // Time in which a rank does nothing within one step, with equal chunks, communication that costs no time, and BW in
  // one piece. With several chunks a rank, where ranks divide the micro-batches; otherwise no less, and no more than
  // with the micro-batches that are missing added as idle time. (Lowered, with gradients that leave before W, the
  // bubble has no weight_gradient in it.)
  double (*bubble)(const ScheduleShape& shape, const ShareTimes& times);
  // The most micro-batches whose activations one rank holds at a time, in units of its whole share; with several chunks
  // a rank, where ranks divide the micro-batches, otherwise no more. Saved operand pairs of grouped weight gradients
  // come on top.
  double (*peak_activations)(const ScheduleShape& shape, RankId rank);
};

absl::Span<const ScheduleInfo> ScheduleTable();

// Whether a rank may have several chunks.
inline bool TakesSeveralChunks(const ScheduleInfo& info) { return info.precondition({2, 2, 2}).ok(); }

// The names of the schedules that train, or of those that only run forward: "gpipe or 1f1b or interleaved", for
// messages.
std::string ScheduleChoices(bool trains);

// InvalidArgument with the names there are, nearest first, for a name that is not in the table.
absl::StatusOr<const ScheduleInfo*> FindSchedule(absl::string_view name);

// The schedule `name`, compute only. InvalidArgument for an unknown name, for a count below 1, and where the schedule's
// precondition refuses.
absl::StatusOr<Schedule> MakeSchedule(absl::string_view name, int ranks, int micro_batches, int chunks_per_rank);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_SCHEDULE_TABLE_H_
