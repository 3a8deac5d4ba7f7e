#ifndef KERNELS_TRANSPORT_SHM_CHANNELS_H_
#define KERNELS_TRANSPORT_SHM_CHANNELS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "kernels/transport/channel_spec.h"
#include "kernels/transport/shm_arena.h"

namespace pipeloom {

// What the two ends of a channel share, followed by the channel's name and, from a cache line's beginning on, by its
// slots. Each counter is written by one end and polled by the other, hence a cache line for each.
struct ShmChannelHeader {
  static constexpr size_t kCacheLine = 64;

  // Written by the end that is opened first, before the other one sees the channel.
  int64_t pages_bytes;  // from here to the next channel
  int64_t bytes;        // these six: of the spec
  int64_t round;
  int32_t source;
  int32_t destination;
  int32_t tag;
  int32_t slots;
  int64_t name_bytes;
  // Under the arena's lock.
  int32_t send_opened;
  int32_t receive_opened;

  alignas(kCacheLine) std::atomic<int64_t> sent;      // messages, by the sender
  alignas(kCacheLine) std::atomic<int64_t> released;  // messages, by the receiver
};

// One end's view of a channel.
struct ShmChannel {
  char* Slot(int64_t k) const { return slots + SlotOf(spec, k) * spec.bytes; }

  ChannelSpec spec;
  ShmMapping mapping;
  ShmChannelHeader* header;  // in the mapping, as are the slots
  char* slots;
};

// The channels of a world, one after the other in its arena from `begin` on. Whichever end comes first makes the
// channel, so neither waits for the other.
class ShmChannels {
 public:
  ShmChannels(ShmArena& arena, int64_t begin) : arena_(arena), end_(begin) {}

  // Opens an end, which is this rank's, of a channel that can be. InvalidArgument for one opened before, or with
  // another spec than the other end; ResourceExhausted where there is no room.
  absl::StatusOr<ShmChannel> Open(const ChannelSpec& spec, ChannelEnd end, Deadline deadline);

 private:
  using Key = std::tuple<RankId, RankId, ChannelTag>;

  absl::Status FindNew();
  absl::StatusOr<ShmChannel> Make(const ChannelSpec& spec);
  absl::StatusOr<ShmChannel> Map(int64_t offset) const;

  ShmArena& arena_;
  std::mutex mutex_;
  int64_t end_;                                // of the channels in offsets_
  absl::flat_hash_map<Key, int64_t> offsets_;  // what this rank knows of the channels of all ranks
};

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_SHM_CHANNELS_H_
