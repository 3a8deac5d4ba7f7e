#include "passes/schedule/verify_schedule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/schedule/action_index.h"
#include "passes/schedule/check_progress.h"
#include "passes/schedule/lower_communication.h"
#include "passes/schedule/verify_messages.h"

namespace pipeloom {
namespace {

absl::Status CheckShape(const Schedule& schedule) {
  if (schedule.micro_batches < 1 || schedule.chunks() < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a schedule of ", schedule.chunks(), " chunks and ",
                                                   schedule.micro_batches, " micro-batches; give at least 1 of each"));
  }
  for (int chunk = 0; chunk < schedule.chunks(); ++chunk) {
    const RankId rank = schedule.rank_of(ChunkId(chunk));
    if (rank < RankId(0) || rank >= RankId(schedule.ranks())) {
      return absl::InvalidArgumentError(absl::StrCat("chunk ", chunk, " is placed on rank ", rank.value(),
                                                     ", but the schedule has ranks 0 to ", schedule.ranks() - 1));
    }
  }
  return absl::OkStatus();
}

// One micro-batch of one chunk: each part is computed once.
absl::Status CheckParts(const Schedule& schedule, const ActionIndex& index, bool trains, ChunkId chunk, int m) {
  const RankId rank = schedule.rank_of(chunk);
  const auto has = [&](ActionKind kind) { return index.Find(kind, chunk, m) >= 0; };
  const auto broken = [&](ActionKind kind, absl::string_view rule) {
    return BrokenAt(rank, {kind, chunk, MicroBatchId(m)}, rule);
  };
  if (!has(ActionKind::kForward)) return broken(ActionKind::kForward, "missing; every chunk runs every micro-batch");
  if (!trains) return absl::OkStatus();
  const bool input = has(ActionKind::kBackwardInput);
  const bool weight = has(ActionKind::kBackwardWeight);
  if (has(ActionKind::kBackward)) {
    if (input || weight)
      return broken(ActionKind::kBackward, "computes what a B or W of the same micro-batch computes");
    return absl::OkStatus();
  }
  if (!input && !weight) return broken(ActionKind::kBackward, "missing; every chunk runs every micro-batch");
  if (!input) return broken(ActionKind::kBackwardInput, "missing, though its W is there");
  if (!weight) return broken(ActionKind::kBackwardWeight, "missing, though its B is there");
  return absl::OkStatus();
}

// One micro-batch of one chunk that trains: its parts in order, and after the gradients of the micro-batch before.
absl::Status CheckBackwardOrder(const Schedule& schedule, const ActionIndex& index, ChunkId chunk, int m) {
  const std::vector<Action>& actions = schedule.actions[schedule.rank_of(chunk).value()];
  const int forward = index.Find(ActionKind::kForward, chunk, m);
  const int input = index.FindPart(ActionKind::kBackwardInput, chunk, m);
  const int weight = index.FindPart(ActionKind::kBackwardWeight, chunk, m);
  const auto broken = [&](int position, int earlier, absl::string_view why) {
    return BrokenAt(schedule.rank_of(chunk), actions[position],
                    absl::StrCat("stands before ", ActionToString(actions[earlier]), "; ", why));
  };
  if (input < forward) return broken(input, forward, "backward uses what forward saved");
  if (weight < input) return broken(weight, input, "weight gradients use the activation gradients");
  if (m == 0) return absl::OkStatus();
  const int before = index.FindPart(ActionKind::kBackwardWeight, chunk, m - 1);
  if (weight < before) return broken(weight, before, "weight gradients accumulate in micro-batch order");
  return absl::OkStatus();
}

absl::Status CheckCompute(const Schedule& schedule, const ActionIndex& index) {
  const bool trains = Trains(schedule);
  for (int chunk = 0; chunk < schedule.chunks(); ++chunk) {
    for (int m = 0; m < schedule.micro_batches; ++m) {
      RETURN_IF_ERROR(CheckParts(schedule, index, trains, ChunkId(chunk), m));
    }
    for (int m = 0; trains && m < schedule.micro_batches; ++m) {
      RETURN_IF_ERROR(CheckBackwardOrder(schedule, index, ChunkId(chunk), m));
    }
  }
  return absl::OkStatus();
}

// Within a rank the order of its list is all that keeps an edge, and says more clearly than a deadlock what is wrong.
absl::Status CheckEdgesWithinRanks(const Schedule& schedule, const ActionIndex& index,
                                   absl::Span<const CommunicationEdge> edges) {
  for (const CommunicationEdge& edge : edges) {
    if (CrossesRanks(schedule, edge) || (!edge.forward && !Trains(schedule))) continue;
    const RankId rank = schedule.rank_of(edge.source);
    for (int m = 0; m < schedule.micro_batches; ++m) {
      const int made = index.FindPart(KindsOf(edge.forward).part, edge.source, m);
      const int used = index.FindPart(KindsOf(edge.forward).part, edge.destination, m);
      if (made < used) continue;
      const std::vector<Action>& actions = schedule.actions[rank.value()];
      return BrokenAt(
          rank, actions[used],
          absl::StrCat("stands before ", ActionToString(actions[made]), "; ", EdgeToString(edge), " brings it values"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCredits(const Schedule& schedule, absl::Span<const CommunicationEdge> edges,
                          absl::Span<const ChannelCredits> credits) {
  for (const ChannelCredits& channel : credits) {
    const std::string name = EdgeToString(channel.edge);
    if (std::find(edges.begin(), edges.end(), channel.edge) == edges.end()) {
      return absl::InvalidArgumentError(absl::StrCat("credits for ", name, ", which is not among the edges"));
    }
    if (channel.slots < 1 || channel.group < 1) {
      return absl::InvalidArgumentError(absl::StrCat(name, " with ", channel.slots, " slots, released in groups of ",
                                                     channel.group, "; give at least 1 of each"));
    }
    const ActionKind last = channel.released_after;
    const bool is_part =
        last == ActionKind::kForward || last == ActionKind::kBackwardInput || last == ActionKind::kBackwardWeight;
    const bool comes = is_part && (last == ActionKind::kForward ? channel.edge.forward : Trains(schedule));
    if (!comes) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": slots released after ", Info(last).text,
                       ", which does not follow their use; give F (of a forward edge), or B or W of a backward part"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifySchedule(const Schedule& schedule, absl::Span<const CommunicationEdge> edges,
                            absl::Span<const ChannelCredits> credits) {
  RETURN_IF_ERROR(CheckShape(schedule));
  RETURN_IF_ERROR(CheckEdges(schedule, edges));
  RETURN_IF_ERROR(CheckCredits(schedule, edges, credits));
  ASSIGN_OR_RETURN(const ActionIndex index, ActionIndex::Build(schedule));
  RETURN_IF_ERROR(CheckCompute(schedule, index));
  RETURN_IF_ERROR(CheckEdgesWithinRanks(schedule, index, edges));
  Schedule lowered = schedule;
  if (!IsLowered(schedule)) {
    ASSIGN_OR_RETURN(lowered, LowerCommunication(schedule, edges));
  }
  RETURN_IF_ERROR(VerifyMessages(lowered, edges));
  RETURN_IF_ERROR(CheckProgress(lowered, edges, credits, SendModel::kRendezvous));
  return CheckProgress(lowered, edges, credits, SendModel::kBuffered);
}

}  // namespace pipeloom
