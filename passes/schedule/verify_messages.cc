#include "passes/schedule/verify_messages.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/schedule/action_index.h"
#include "passes/schedule/lower_communication.h"

namespace pipeloom {
namespace {

bool HasMessages(absl::Span<const CommunicationEdge> edges, bool forward, bool sends, ChunkId chunk) {
  return std::any_of(edges.begin(), edges.end(), [&](const CommunicationEdge& edge) {
    return edge.forward == forward && (sends ? edge.source : edge.destination) == chunk;
  });
}

// The SENDs (or RECVs) of one chunk in one direction, for all micro-batches.
absl::Status CheckChunk(const Schedule& schedule, absl::Span<const CommunicationEdge> edges, const ActionIndex& index,
                        bool forward, bool sends, ChunkId chunk) {
  const DirectionKinds kinds = KindsOf(forward);
  const ActionKind kind = sends ? kinds.send : kinds.receive;
  const RankId rank = schedule.rank_of(chunk);
  const bool wanted = HasMessages(edges, forward, sends, chunk) && (forward || Trains(schedule));
  for (int m = 0; m < schedule.micro_batches; ++m) {
    const Action action{kind, chunk, MicroBatchId(m)};
    const int position = index.Find(kind, chunk, m);
    if (wanted != (position >= 0)) {
      return BrokenAt(rank, action,
                      absl::StrCat(wanted ? "missing; a " : "stands without a ", forward ? "forward" : "backward",
                                   " edge ", sends ? "to" : "from", " another chunk"));
    }
    const int part = index.FindPart(kinds.part, chunk, m);
    if (!wanted || (sends ? part < position : position < part)) continue;
    return BrokenAt(
        rank, action,
        absl::StrCat("stands ", sends ? "before " : "after ", ActionToString(schedule.actions[rank.value()][part]),
                     ", which ", sends ? "makes" : "uses", " its values"));
  }
  return absl::OkStatus();
}

// The micro-batches of one edge's messages in the order in which they are sent (or received).
std::vector<Action> OrderOf(const Schedule& schedule, const CommunicationEdge& edge, bool sends) {
  const ChunkId chunk = sends ? edge.source : edge.destination;
  const ActionKind kind = sends ? KindsOf(edge.forward).send : KindsOf(edge.forward).receive;
  std::vector<Action> order;
  for (const Action& action : schedule.actions[schedule.rank_of(chunk).value()]) {
    if (action.kind == kind && action.chunk == chunk) order.push_back(action);
  }
  return order;
}

absl::Status CheckMatching(const Schedule& schedule, absl::Span<const CommunicationEdge> edges) {
  for (const CommunicationEdge& edge : edges) {
    const std::vector<Action> sent = OrderOf(schedule, edge, /*sends=*/true);
    const std::vector<Action> received = OrderOf(schedule, edge, /*sends=*/false);
    PIPELOOM_CHECK(sent.size() == received.size(), EdgeToString(edge), " has ", sent.size(), " sends");
    for (size_t k = 0; k < received.size(); ++k) {
      if (sent[k].micro_batch == received[k].micro_batch) continue;
      return BrokenAt(schedule.rank_of(edge.destination), received[k],
                      absl::StrCat("is receive ", k, " of ", EdgeToString(edge), ", whose send ", k, " is ",
                                   ActionToString(sent[k]),
                                   "; the k-th receive must match the k-th send, since a channel keeps their order"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStepEnd(const Schedule& schedule) {
  const std::vector<Action> end = StepEnd(Trains(schedule));
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    std::vector<Action> actions = schedule.actions[rank];
    for (size_t k = end.size(); k-- > 0;) {
      if (actions.empty() || actions.back() != end[k]) {
        return BrokenAt(RankId(rank), end[k], "missing at the step's end, where every rank has it");
      }
      actions.pop_back();
    }
    for (const Action& action : actions) {
      if (!Info(action.kind).per_micro_batch) {
        return BrokenAt(RankId(rank), action, "stands before the step's end, or not in its order");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyMessages(const Schedule& lowered, absl::Span<const CommunicationEdge> edges) {
  ASSIGN_OR_RETURN(const ActionIndex index, ActionIndex::Build(lowered));
  for (int chunk = 0; chunk < lowered.chunks(); ++chunk) {
    for (bool forward : {true, false}) {
      for (bool sends : {true, false}) {
        RETURN_IF_ERROR(CheckChunk(lowered, edges, index, forward, sends, ChunkId(chunk)));
      }
    }
  }
  RETURN_IF_ERROR(CheckMatching(lowered, edges));
  return CheckStepEnd(lowered);
}

}  // namespace pipeloom
