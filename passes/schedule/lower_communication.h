#ifndef PASSES_SCHEDULE_LOWER_COMMUNICATION_H_
#define PASSES_SCHEDULE_LOWER_COMMUNICATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "passes/schedule/communication.h"

namespace pipeloom {

// Adds communication to a compute-only schedule: a receive before the first action that uses what arrives, a send right
// after the one that makes what leaves (BW becomes B and W, with the send between them), and the step's end. All edges
// into (out of) a chunk share its RECV (SEND), those between chunks of one rank too. With edges 0 -> 1 forward and
// 1 -> 0 backward:
//
//   0F0 0BW0                  0F0 0SEND_F0 0RECV_B0 0BW0 REDUCE EXCHANGE STEP
//   1F0 1BW0           ->     1RECV_F0 1F0 1B0 1SEND_B0 1W0 REDUCE EXCHANGE STEP
//
// A forward-only schedule ends in REDUCE EXCHANGE, and backward edges mean nothing to it. InvalidArgument for edges
// that CheckEdges refuses and for a schedule that has communication already.
absl::StatusOr<Schedule> LowerCommunication(const Schedule& schedule, absl::Span<const CommunicationEdge> edges);

// What every rank's list ends with: REDUCE EXCHANGE STEP, the STEP only where something is trained.
std::vector<Action> StepEnd(bool trains);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_LOWER_COMMUNICATION_H_
