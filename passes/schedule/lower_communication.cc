#include "passes/schedule/lower_communication.h"

#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

// Which messages a chunk has in one direction.
struct ChunkMessages {
  bool arrive = false;
  bool leave = false;
};

// Messages of each chunk in one direction.
std::vector<ChunkMessages> MessagesOf(bool forward, int chunks, absl::Span<const CommunicationEdge> edges) {
  std::vector<ChunkMessages> messages(chunks);
  for (const CommunicationEdge& edge : edges) {
    if (edge.forward != forward) continue;
    messages[edge.source.value()].leave = true;
    messages[edge.destination.value()].arrive = true;
  }
  return messages;
}

// `actions` with the sends and receives of one direction around them.
std::vector<Action> WithMessages(const std::vector<Action>& actions, bool forward,
                                 const std::vector<ChunkMessages>& messages) {
  const DirectionKinds kinds = KindsOf(forward);
  std::vector<Action> result;
  for (const Action& action : actions) {
    const ChunkMessages moved =
        Performs(action.kind, kinds.part) ? messages[action.chunk.value()] : ChunkMessages{false, false};
    if (moved.arrive) result.push_back({kinds.receive, action.chunk, action.micro_batch});
    // Another rank waits for what B makes, and nobody for W: the send goes between the two.
    const bool split = moved.leave && action.kind == ActionKind::kBackward;
    result.push_back({split ? ActionKind::kBackwardInput : action.kind, action.chunk, action.micro_batch});
    if (moved.leave) result.push_back({kinds.send, action.chunk, action.micro_batch});
    if (split) result.push_back({ActionKind::kBackwardWeight, action.chunk, action.micro_batch});
  }
  return result;
}

}  // namespace

std::vector<Action> StepEnd(bool trains) {
  std::vector<Action> end = {Action{ActionKind::kReduce}, Action{ActionKind::kExchange}};
  if (trains) end.push_back(Action{ActionKind::kStep});
  return end;
}

absl::StatusOr<Schedule> LowerCommunication(const Schedule& schedule, absl::Span<const CommunicationEdge> edges) {
  if (IsLowered(schedule)) {
    return absl::InvalidArgumentError("the schedule has communication already; lower a compute-only one");
  }
  RETURN_IF_ERROR(CheckEdges(schedule, edges));
  const std::vector<Action> end = StepEnd(Trains(schedule));
  Schedule lowered = schedule;
  for (bool forward : {true, false}) {
    const std::vector<ChunkMessages> messages = MessagesOf(forward, schedule.chunks(), edges);
    for (std::vector<Action>& actions : lowered.actions) actions = WithMessages(actions, forward, messages);
  }
  for (std::vector<Action>& actions : lowered.actions) actions.insert(actions.end(), end.begin(), end.end());
  return lowered;
}

}  // namespace pipeloom
