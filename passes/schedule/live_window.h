#ifndef PASSES_SCHEDULE_LIVE_WINDOW_H_
#define PASSES_SCHEDULE_LIVE_WINDOW_H_

#include "absl/types/span.h"
#include "passes/schedule/action.h"

namespace pipeloom {

// The micro-batches begin, ..., end-1.
struct MicroBatchRange {
  int begin = 0;
  int end = 0;
};

// The micro-batches whose value is used for the last time by `action`, where its chunk's last use of the value is in
// `last_use`: F, B or W. Weight gradients of `group` micro-batches are one multiply, made by the W that ends the group,
// so with W that action frees the whole group and the others of the group free nothing. Groups start at micro-batch 0;
// the last of the `micro_batches` ends a group in any case. `group` has no meaning with F and B.
MicroBatchRange LastUsedBy(const Action& action, ActionKind last_use, int group, int micro_batches);

// Slots that a value of `chunk` needs so that micro-batches m and m + slots never live at the same time: the greatest
// (highest live micro-batch - lowest live one + 1) over one rank's compute actions in order. A micro-batch lives from
// its action that performs `first_use` (F, B or W) to its LastUsedBy action, both included. 0 if the chunk has no such
// action. `actions` must have passed VerifySchedule, and have `last_use` for every `first_use`.
int LiveWindow(absl::Span<const Action> actions, ChunkId chunk, ActionKind first_use, ActionKind last_use, int group);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_LIVE_WINDOW_H_
