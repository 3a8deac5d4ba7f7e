#ifndef PASSES_SCHEDULE_VERIFY_SCHEDULE_H_
#define PASSES_SCHEDULE_VERIFY_SCHEDULE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "passes/schedule/communication.h"

namespace pipeloom {

// Proves that a schedule, lowered or compute only (then as LowerCommunication would lower it), can run:
//  * every chunk computes every part of every micro-batch once, on its rank: F, and either BW or both B and W;
//  * on each rank F comes before B, B before W, what an edge brings before its use; weight gradients of a chunk come in
//    micro-batch order, in which they accumulate;
//  * VerifyMessages: each message is sent and received once, the k-th send of a rank to another being its k-th receive;
//  * CheckProgress: no deadlock under rendezvous sends, nor under buffered sends with the given credits.
// InvalidArgument that names rank, action and rule; for a deadlock the place of every rank. An edge without credits has
// as many slots as the step has messages.
absl::Status VerifySchedule(const Schedule& schedule, absl::Span<const CommunicationEdge> edges,
                            absl::Span<const ChannelCredits> credits);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_VERIFY_SCHEDULE_H_
