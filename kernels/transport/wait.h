#ifndef KERNELS_TRANSPORT_WAIT_H_
#define KERNELS_TRANSPORT_WAIT_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/transport/failure.h"
#include "kernels/transport/transport.h"

namespace pipeloom {

// What a wait is for, in the words of its error: "a free slot" or "its arrival" of message k.
struct WaitReason {
  RankId rank;  // who waits
  const ChannelSpec& channel;
  int64_t message;
  absl::string_view awaited;
};

// The slow part of WaitUntil: spins, then yields, since ranks may share cores.
absl::Status PollUntil(absl::FunctionRef<bool()> ready, const Failure& failure, Deadline deadline,
                       const WaitReason& reason);

// The one wait of all transports. OK once `ready()` is true; the failure's status as soon as there is one, also where
// the wait would have been over; DeadlineExceeded at the deadline; Aborted soon after SIGTERM (stop_signal.h). A
// transport that must be driven does so in `ready`, which is called at every poll. Where nothing is to be waited for,
// no clock is read.
template <typename Ready>
absl::Status WaitUntil(const Ready& ready, const Failure& failure, Deadline deadline, const WaitReason& reason) {
  if (failure.failed()) return failure.status();
  if (ready()) return absl::OkStatus();
  return PollUntil(ready, failure, deadline, reason);
}

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_WAIT_H_
