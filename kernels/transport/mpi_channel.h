#ifndef KERNELS_TRANSPORT_MPI_CHANNEL_H_
#define KERNELS_TRANSPORT_MPI_CHANNEL_H_

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "kernels/base/buffer.h"
#include "kernels/transport/channel_spec.h"
#include "kernels/transport/mpi_failure.h"
#include "kernels/transport/mpi_requests.h"

namespace pipeloom {

// A spec as a message of one size. Of a long name its beginning is sent, and a hash of the whole.
struct MpiSpecRecord {
  static constexpr int kNameBytes = 224;

  int64_t bytes;
  int64_t slots;
  int64_t round;
  uint64_t name_hash;
  char name[kNameBytes];  // zeros behind it
};

// What a channel uses of its engine.
struct MpiChannelContext {
  MPI_Comm data;     // from source to destination
  MPI_Comm credits;  // from destination to source
  MpiRequests& requests;
  MpiFailure& failure;
};

// One end of a channel: its slots, and the agreement on the spec. The spec is the first message each way; MPI keeps the
// order of messages of one tag, so it arrives before anything else.
class MpiChannel : public MpiListener {
 public:
  const ChannelSpec& spec() const { return spec_; }
  char* Slot(int64_t k) { return slots_.data() + SlotOf(spec_, k) * spec_.bytes; }
  // Whether the other end's spec has arrived.
  bool agreed() const { return agreed_; }
  // CheckSameSpec, once it has.
  const absl::Status& difference() const { return difference_; }

 protected:
  using Direction = MpiRequests::Direction;

  // Parts of a channel's requests; the messages follow, by slot.
  enum Part { kMySpec, kTheirSpec, kCredit, kFirstSlot };

  MpiChannel(const ChannelSpec& spec, ChannelEnd end, const MpiChannelContext& context);

  absl::Status ExchangeSpecs();
  // A request between `data` and the other end; `comm` is that of its direction.
  absl::StatusOr<int> Add(Direction direction, void* data, int64_t bytes, int part);
  // Starts a request; an error becomes the rank's failure.
  void Start(int request);
  // The rank's failure, for a code that is an error.
  void Check(int code);

  void OnComplete(int part, int code) override;
  virtual void OnMessage(int part) = 0;

  const ChannelSpec spec_;
  MpiChannelContext context_;

 private:
  const ChannelEnd end_;
  Buffer slots_;
  MpiSpecRecord mine_;
  MpiSpecRecord theirs_ = {};
  bool agreed_ = false;
  absl::Status difference_;
};

// Message k: wait for the slot's credit, start its request. The credit says how many messages were released so far.
class MpiSendChannel : public MpiChannel {
 public:
  MpiSendChannel(const ChannelSpec& spec, const MpiChannelContext& context)
      : MpiChannel(spec, ChannelEnd::kSend, context), under_way_(spec.slots, false) {}

  absl::Status Open();
  bool CanWrite(int64_t k) const {
    return agreed() && !under_way_[SlotOf(spec_, k)] && released_ >= ReleasedBefore(spec_, k);
  }
  void Send(int64_t k);

 private:
  void OnMessage(int part) override;

  int first_ = 0;  // request of slot 0
  int credit_ = 0;
  int64_t sent_ = 0;
  int64_t released_ = 0;  // messages, as far as this end knows
  int64_t credit_in_ = 0;
  std::vector<bool> under_way_;  // by slot
};

// Receives are posted in the order of messages, each once its slot is free, and before the credit for it goes out: a
// message always finds its receive.
class MpiReceiveChannel : public MpiChannel {
 public:
  MpiReceiveChannel(const ChannelSpec& spec, const MpiChannelContext& context)
      : MpiChannel(spec, ChannelEnd::kReceive, context), complete_(spec.slots, false) {}

  absl::Status Open();
  bool HasArrived(int64_t k) const { return agreed() && arrived_ > k; }
  void Release(int64_t k);

 private:
  void OnMessage(int part) override;
  void PostReceives();
  void SendCredit();

  int first_ = 0;  // request of slot 0
  int credit_ = 0;
  int64_t posted_ = 0;    // receives, in the order of messages
  int64_t arrived_ = 0;   // messages, without a gap
  int64_t released_ = 0;  // messages
  int64_t credit_out_ = 0;
  bool credit_under_way_ = false;
  std::vector<bool>
      complete_;  // by slot: the receive posted last; a later message may be complete before an earlier one
};

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_MPI_CHANNEL_H_
