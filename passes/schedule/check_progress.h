#ifndef PASSES_SCHEDULE_CHECK_PROGRESS_H_
#define PASSES_SCHEDULE_CHECK_PROGRESS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "passes/schedule/communication.h"

namespace pipeloom {

// When message k of a channel may be made. In both models a rank runs its actions one after the other, a RECV waits
// until its messages have been sent, and a SEND never waits: the slot of its message was acquired before the message
// was made, and there is where a rank waits. That is the executor's protocol.
enum class SendModel {
  // A message lies at the sender until the receiver reaches its RECV, no receive being posted earlier: message k may be
  // made once the RECV of message k - slots has been reached. What hangs here hangs by its order of actions.
  // (A stricter model, in which SEND itself waits until its RECV is reached, is not demanded: 1f1b hangs in it from two
  // ranks on, rank 0 in 0SEND_F1 and rank 1 in 1SEND_B0, each waiting for the other to receive.)
  kRendezvous,
  // A message lies at the receiver, which has a receive posted for every free slot, until it is released
  // (ChannelCredits): message k may be made once message k - slots has been released. What hangs only here has too few
  // credits.
  kBuffered,
};

// OK if all ranks of a lowered schedule, which VerifyMessages has found right, reach their ends under `model`.
// Otherwise InvalidArgument with the place of every rank and what it waits for. What a rank waits for stays true once
// it is, so that one order of execution speaks for all. Acquiring waits for a credit, so that credits never get
// negative: too few of them show as a deadlock. Edges without credits have a slot for every message.
absl::Status CheckProgress(const Schedule& lowered, absl::Span<const CommunicationEdge> edges,
                           absl::Span<const ChannelCredits> credits, SendModel model);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_CHECK_PROGRESS_H_
