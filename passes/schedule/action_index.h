#ifndef PASSES_SCHEDULE_ACTION_INDEX_H_
#define PASSES_SCHEDULE_ACTION_INDEX_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "passes/schedule/schedule.h"

namespace pipeloom {

// Where each action of a micro-batch stands in its rank's list.
class ActionIndex {
 public:
  // InvalidArgument for a chunk or micro-batch that the schedule does not have, for a chunk on another rank than its
  // own, and for an action that stands twice.
  static absl::StatusOr<ActionIndex> Build(const Schedule& schedule);

  // -1 where there is no such action.
  int Find(ActionKind kind, ChunkId chunk, int micro_batch) const;
  // Of the action that performs `part` (F, B or W); -1 where none does.
  int FindPart(ActionKind part, ChunkId chunk, int micro_batch) const;

 private:
  absl::flat_hash_map<Action, int> positions_;
};

// InvalidArgument "rank 1, 1BW0: <rule>".
absl::Status BrokenAt(RankId rank, const Action& action, absl::string_view rule);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_ACTION_INDEX_H_
