#ifndef PASSES_SCHEDULE_COMMUNICATION_H_
#define PASSES_SCHEDULE_COMMUNICATION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "passes/schedule/schedule.h"

namespace pipeloom {

// The kinds that belong to one direction: the part of a chunk's work that makes the boundary values of its source and
// is the first to use them in its destination, and how they travel.
struct DirectionKinds {
  ActionKind part;
  ActionKind send;
  ActionKind receive;
};

constexpr DirectionKinds KindsOf(bool forward) {
  return forward ? DirectionKinds{ActionKind::kForward, ActionKind::kSendForward, ActionKind::kReceiveForward}
                 : DirectionKinds{ActionKind::kBackwardInput, ActionKind::kSendBackward, ActionKind::kReceiveBackward};
}

// Boundary values that chunk `source` makes and chunk `destination` uses, over any distance: activations (forward) or
// gradients (the other way, between the same two chunks as a rule).
struct CommunicationEdge {
  ChunkId source;
  ChunkId destination;
  bool forward = true;

  friend bool operator==(const CommunicationEdge& a, const CommunicationEdge& b) {
    return a.source == b.source && a.destination == b.destination && a.forward == b.forward;
  }
};

// The channel of one boundary value. Its receiver owns `slots` slots; message k may be made once message k - slots has
// been released: after the receiver's F, B or W (`released_after`) of its micro-batch, where W counts when it ends a
// group of `group` micro-batches (weight gradients of a group are one multiply; groups start at micro-batch 0).
struct ChannelCredits {
  CommunicationEdge edge;
  int slots = 1;
  ActionKind released_after = ActionKind::kForward;
  int group = 1;
};

// "forward edge 0 -> 1".
std::string EdgeToString(const CommunicationEdge& edge);

// Whether the edge joins two ranks; a message within a rank takes no time.
bool CrossesRanks(const Schedule& schedule, const CommunicationEdge& edge);

// InvalidArgument, naming the edge, for a chunk that the schedule does not have and for an edge from a chunk to itself.
absl::Status CheckEdges(const Schedule& schedule, absl::Span<const CommunicationEdge> edges);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_COMMUNICATION_H_
