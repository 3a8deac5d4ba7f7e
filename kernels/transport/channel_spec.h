#ifndef KERNELS_TRANSPORT_CHANNEL_SPEC_H_
#define KERNELS_TRANSPORT_CHANNEL_SPEC_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "kernels/base/ids.h"

namespace pipeloom {

// One direction between two ranks (which may be the same one), for one value. The receiver owns `slots` slots of
// `bytes` each, one after the other without a gap, the first on a 64-byte boundary: messages of consecutive slots can
// be read as one matrix. Messages k = 0, 1, ... are counted over the life of the channel and come in rounds of `round`
// messages (a step's micro-batches, say); message k lies in slot (k % round) % slots, so that a round always begins at
// slot 0. The sender may write it once the receiver has released the message that lay there before (its credit).
struct ChannelSpec {
  static constexpr int64_t kOneRound = std::numeric_limits<int64_t>::max();  // slots are used in turn for ever

  RankId source;
  RankId destination;
  ChannelTag tag;    // unique for (source, destination) over the life of the transport
  std::string name;  // the value it carries, for messages
  int64_t bytes = 0;
  int slots = 1;
  int64_t round = kOneRound;

  friend bool operator==(const ChannelSpec& a, const ChannelSpec& b) {
    return a.source == b.source && a.destination == b.destination && a.tag == b.tag && a.name == b.name &&
           a.bytes == b.bytes && a.slots == b.slots && a.round == b.round;
  }
  friend bool operator!=(const ChannelSpec& a, const ChannelSpec& b) { return !(a == b); }
};

inline int SlotOf(const ChannelSpec& spec, int64_t k) { return static_cast<int>(k % spec.round % spec.slots); }

// How many messages must have been released before message k may be written: up to the last one in its slot.
int64_t ReleasedBefore(const ChannelSpec& spec, int64_t k);

enum class ChannelEnd { kSend, kReceive };

// "channel 'h' (rank 0 -> rank 1, tag 3)": which channel, for messages.
std::string ChannelName(const ChannelSpec& spec);
// "channel 'h' (rank 0 -> rank 1, tag 3, 2 slots of 4096 bytes)": all of it.
std::string ChannelToString(const ChannelSpec& spec);

// InvalidArgument unless `rank` of `size` may open this end of `spec`: both ranks exist, the end is this rank's, there
// is a slot, and bytes are not negative.
absl::Status CheckChannelEnd(const ChannelSpec& spec, ChannelEnd end, RankId rank, int size);

// InvalidArgument naming both, unless the two ends of a channel gave equal specs.
absl::Status CheckSameSpec(const ChannelSpec& mine, const ChannelSpec& theirs);

// InvalidArgument: this end of `spec` is open already.
absl::Status OpenedTwiceError(const ChannelSpec& spec, ChannelEnd end);

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_CHANNEL_SPEC_H_
