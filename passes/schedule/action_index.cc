#include "passes/schedule/action_index.h"

#include "absl/strings/str_cat.h"

namespace pipeloom {
namespace {

// OK where `action` may stand on `rank` at all.
absl::Status CheckPlace(const Schedule& schedule, RankId rank, const Action& action) {
  if (action.chunk < ChunkId(0) || action.chunk >= ChunkId(schedule.chunks())) {
    return BrokenAt(rank, action, absl::StrCat("the schedule has ", schedule.chunks(), " chunks, numbered from 0"));
  }
  if (action.micro_batch < MicroBatchId(0) || action.micro_batch >= MicroBatchId(schedule.micro_batches)) {
    return BrokenAt(rank, action,
                    absl::StrCat("the schedule has ", schedule.micro_batches, " micro-batches, numbered from 0"));
  }
  if (schedule.rank_of(action.chunk) != rank) {
    return BrokenAt(
        rank, action,
        absl::StrCat("chunk ", action.chunk.value(), " is placed on rank ", schedule.rank_of(action.chunk).value()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BrokenAt(RankId rank, const Action& action, absl::string_view rule) {
  return absl::InvalidArgumentError(absl::StrCat("rank ", rank.value(), ", ", ActionToString(action), ": ", rule));
}

absl::StatusOr<ActionIndex> ActionIndex::Build(const Schedule& schedule) {
  ActionIndex index;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    const std::vector<Action>& actions = schedule.actions[rank];
    for (int position = 0; position < static_cast<int>(actions.size()); ++position) {
      const Action& action = actions[position];
      if (!Info(action.kind).per_micro_batch) continue;
      if (absl::Status status = CheckPlace(schedule, RankId(rank), action); !status.ok()) return status;
      const auto [entry, is_new] = index.positions_.emplace(action, position);
      if (!is_new) {
        return BrokenAt(
            RankId(rank), action,
            absl::StrCat("stands twice, as actions ", entry->second, " and ", position, "; every action runs once"));
      }
    }
  }
  return index;
}

int ActionIndex::Find(ActionKind kind, ChunkId chunk, int micro_batch) const {
  const auto entry = positions_.find(Action{kind, chunk, MicroBatchId(micro_batch)});
  return entry == positions_.end() ? -1 : entry->second;
}

int ActionIndex::FindPart(ActionKind part, ChunkId chunk, int micro_batch) const {
  for (const ActionKindInfo& info : kActionKinds) {
    if (!Performs(info.kind, part)) continue;
    if (const int position = Find(info.kind, chunk, micro_batch); position >= 0) return position;
  }
  return -1;
}

}  // namespace pipeloom
