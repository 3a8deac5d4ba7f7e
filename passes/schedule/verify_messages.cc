#include "passes/schedule/verify_messages.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/schedule/action_index.h"
#include "passes/schedule/lower_communication.h"

namespace pipeloom {
namespace {

bool HasMessages(const Schedule& schedule, absl::Span<const CommunicationEdge> edges, bool forward, bool sends,
                 ChunkId chunk) {
  return std::any_of(edges.begin(), edges.end(), [&](const CommunicationEdge& edge) {
    return edge.forward == forward && (sends ? edge.source : edge.destination) == chunk && CrossesRanks(schedule, edge);
  });
}

// The SENDs (or RECVs) of one chunk in one direction, for all micro-batches.
absl::Status CheckChunk(const Schedule& schedule, absl::Span<const CommunicationEdge> edges, const ActionIndex& index,
                        bool forward, bool sends, ChunkId chunk) {
  const DirectionKinds kinds = KindsOf(forward);
  const ActionKind kind = sends ? kinds.send : kinds.receive;
  const RankId rank = schedule.rank_of(chunk);
  const bool wanted = HasMessages(schedule, edges, forward, sends, chunk) && (forward || Trains(schedule));
  for (int m = 0; m < schedule.micro_batches; ++m) {
    const Action action{kind, chunk, MicroBatchId(m)};
    const int position = index.Find(kind, chunk, m);
    if (wanted != (position >= 0)) {
      return BrokenAt(rank, action,
                      absl::StrCat(wanted ? "missing; a " : "stands without a ", forward ? "forward" : "backward",
                                   " edge ", sends ? "to" : "from", " another rank"));
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

// One boundary value's message, and the action that sends or receives it.
struct Message {
  CommunicationEdge edge;
  Action action;
};

// The messages between each (source, destination) rank in the order in which the source sends (or the destination
// receives) them.
using MessageOrder = std::map<std::pair<RankId, RankId>, std::vector<Message>>;

MessageOrder OrderOf(const Schedule& schedule, absl::Span<const CommunicationEdge> edges, bool sends) {
  MessageOrder order;
  for (const std::vector<Action>& actions : schedule.actions) {
    for (const Action& action : actions) {
      for (const CommunicationEdge& edge : edges) {
        const DirectionKinds kinds = KindsOf(edge.forward);
        if (action.kind != (sends ? kinds.send : kinds.receive) ||
            action.chunk != (sends ? edge.source : edge.destination) || !CrossesRanks(schedule, edge)) {
          continue;
        }
        order[{schedule.rank_of(edge.source), schedule.rank_of(edge.destination)}].push_back({edge, action});
      }
    }
  }
  return order;
}

absl::Status CheckMatching(const Schedule& schedule, absl::Span<const CommunicationEdge> edges) {
  const MessageOrder sent = OrderOf(schedule, edges, /*sends=*/true);
  const MessageOrder received = OrderOf(schedule, edges, /*sends=*/false);
  for (const auto& [ranks, messages] : received) {
    const std::vector<Message>& sends = sent.at(ranks);
    PIPELOOM_CHECK(sends.size() == messages.size(), "rank ", ranks.first.value(), " sends ", sends.size(), " messages");
    for (size_t k = 0; k < messages.size(); ++k) {
      if (sends[k].edge == messages[k].edge && sends[k].action.micro_batch == messages[k].action.micro_batch) continue;
      return BrokenAt(ranks.second, messages[k].action,
                      absl::StrCat("is receive ", k, " from rank ", ranks.first.value(), ", whose send ", k, " is ",
                                   ActionToString(sends[k].action),
                                   "; the k-th receive must match the k-th send, since messages carry no tag"));
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
