#include "passes/schedule/schedule.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

template <typename Predicate>
bool AnyAction(const Schedule& schedule, Predicate predicate) {
  for (const std::vector<Action>& rank_actions : schedule.actions) {
    for (const Action& action : rank_actions) {
      if (predicate(action.kind)) return true;
    }
  }
  return false;
}

absl::StatusOr<std::vector<RankId>> PlacementOf(const std::vector<std::vector<Action>>& actions) {
  std::map<ChunkId, RankId> rank_of;
  for (int rank = 0; rank < static_cast<int>(actions.size()); ++rank) {
    for (const Action& action : actions[rank]) {
      if (!Info(action.kind).per_micro_batch) continue;
      const auto [entry, is_new] = rank_of.emplace(action.chunk, RankId(rank));
      if (!is_new && entry->second != RankId(rank)) {
        return absl::InvalidArgumentError(absl::StrCat("rank ", rank, ", ", ActionToString(action), ": chunk ",
                                                       action.chunk.value(), " stands on rank ", entry->second.value(),
                                                       " as well; a chunk runs on one rank"));
      }
    }
  }
  std::vector<RankId> placement;
  for (const auto& [chunk, rank] : rank_of) {
    if (chunk.value() != static_cast<int>(placement.size())) {
      return absl::InvalidArgumentError(absl::StrCat("chunk ", placement.size(), " has no action, but chunk ",
                                                     chunk.value(), " has; number chunks from 0 without gaps"));
    }
    placement.push_back(rank);
  }
  return placement;
}

absl::StatusOr<int> CountMicroBatches(const std::vector<std::vector<Action>>& actions) {
  std::set<MicroBatchId> seen;
  for (const std::vector<Action>& rank_actions : actions) {
    for (const Action& action : rank_actions) {
      if (Info(action.kind).per_micro_batch) seen.insert(action.micro_batch);
    }
  }
  int count = 0;
  for (MicroBatchId micro_batch : seen) {
    if (micro_batch.value() != count) {
      return absl::InvalidArgumentError(absl::StrCat("micro-batch ", count, " has no action, but micro-batch ",
                                                     micro_batch.value(),
                                                     " has; number micro-batches from 0 without gaps"));
    }
    ++count;
  }
  return count;
}

}  // namespace

bool Trains(const Schedule& schedule) {
  return AnyAction(schedule, [](ActionKind kind) { return IsCompute(kind) && kind != ActionKind::kForward; });
}

bool IsLowered(const Schedule& schedule) {
  return AnyAction(schedule, [](ActionKind kind) { return !IsCompute(kind); });
}

std::string ScheduleToString(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& rank_actions : schedule.actions) {
    absl::StrAppend(
        &text,
        absl::StrJoin(rank_actions, " ",
                      [](std::string* out, const Action& action) { absl::StrAppend(out, ActionToString(action)); }),
        "\n");
  }
  return text;
}

absl::StatusOr<Schedule> ParseSchedule(absl::string_view text) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  Schedule schedule;
  for (absl::string_view line : lines) {
    std::vector<Action> rank_actions;
    for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      absl::StatusOr<Action> action = ParseAction(word);
      if (!action.ok()) return Annotate(action.status(), absl::StrCat("rank ", schedule.actions.size()));
      rank_actions.push_back(*action);
    }
    schedule.actions.push_back(std::move(rank_actions));
  }
  ASSIGN_OR_RETURN(schedule.placement, PlacementOf(schedule.actions));
  ASSIGN_OR_RETURN(schedule.micro_batches, CountMicroBatches(schedule.actions));
  if (schedule.placement.empty()) {
    return absl::InvalidArgumentError("a schedule without any action of a micro-batch; write one line a rank");
  }
  return schedule;
}

}  // namespace pipeloom
