#ifndef KERNELS_TRANSPORT_TRANSPORT_H_
#define KERNELS_TRANSPORT_TRANSPORT_H_

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/base/ids.h"
#include "kernels/transport/channel_spec.h"

namespace pipeloom {

using Deadline = std::chrono::steady_clock::time_point;

// Sender's end of a channel; used by one thread. A wait polls, yields after about 50 us, and ends with
// DeadlineExceeded (naming channel, message, what was waited for and the seconds) or with the status that a rank failed
// with; a failure also ends a wait that would be over. Messages are acquired, then sent, in order.
class SendEnd {
 public:
  virtual ~SendEnd() = default;
  // Where message k is to be written: the same address for all messages of one slot, known before the first message.
  virtual char* Slot(int64_t k) = 0;
  // Waits until message k may be written. k is that of the next Send.
  virtual absl::Status Acquire(int64_t k, Deadline deadline) = 0;
  // Hands message k over. Needs no wait: Acquire(k) came first.
  virtual void Send(int64_t k) = 0;
};

// Receiver's end of a channel; used by one thread.
class ReceiveEnd {
 public:
  virtual ~ReceiveEnd() = default;
  virtual char* Slot(int64_t k) = 0;
  // Waits until message k has arrived.
  virtual absl::Status Receive(int64_t k, Deadline deadline) = 0;
  // Gives the slots of all messages up to and including k back to the sender.
  virtual void Release(int64_t k) = 0;
};

// One rank's view of how bytes move between ranks.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual RankId rank() const = 0;
  virtual int size() const = 0;

  // Both ends open a channel with an equal spec before the first message; channels are opened in the same order on all
  // ranks. InvalidArgument for a rank out of range, for an end that is not this rank, for a channel opened twice, and
  // for a spec that differs from the other end's (naming both).
  virtual absl::StatusOr<std::unique_ptr<SendEnd>> OpenSend(const ChannelSpec& spec) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReceiveEnd>> OpenReceive(const ChannelSpec& spec) = 0;

  // Lets messages under way move on; called between kernels. Costs nothing where the transport needs no help.
  virtual void Progress() = 0;

  // Poisons all channels of all ranks with `status`: every wait, now and later, ends with the first status given.
  virtual void Fail(const absl::Status& status) = 0;
  // OK, or the status that the first failing rank gave.
  virtual absl::Status failure() const = 0;
};

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_TRANSPORT_H_
