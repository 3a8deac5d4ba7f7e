#ifndef PASSES_SCHEDULE_VERIFY_MESSAGES_H_
#define PASSES_SCHEDULE_VERIFY_MESSAGES_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "passes/schedule/communication.h"

namespace pipeloom {

// Checks the communication of a lowered schedule whose compute actions and edges VerifySchedule has found right:
//  * a chunk with edges to (from) other chunks has one SEND (RECV) a micro-batch and direction, after (before) the work
//    that makes (uses) the values, and no other;
//  * the k-th message that an edge's source sends is the k-th that its destination receives. Edges are told apart: two
//    ranks with several chunks each may receive from each other in another order than the other one sends;
//  * each rank ends with StepEnd, and has no part of it elsewhere.
// InvalidArgument that names rank, action and rule.
absl::Status VerifyMessages(const Schedule& lowered, absl::Span<const CommunicationEdge> edges);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_VERIFY_MESSAGES_H_
