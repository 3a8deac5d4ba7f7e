#ifndef KERNELS_BASE_IDS_H_
#define KERNELS_BASE_IDS_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

namespace pipeloom {

// An integer that means one thing. Two ids of different meaning neither compare nor convert, so a stage can never be
// passed where a rank is wanted.
template <typename Tag>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(int value) : value_(value) {}
  constexpr int value() const { return value_; }

  friend constexpr bool operator==(StrongId a, StrongId b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(StrongId a, StrongId b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(StrongId a, StrongId b) { return a.value_ < b.value_; }
  friend constexpr bool operator<=(StrongId a, StrongId b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>(StrongId a, StrongId b) { return a.value_ > b.value_; }
  friend constexpr bool operator>=(StrongId a, StrongId b) { return a.value_ >= b.value_; }
  template <typename H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& os, StrongId id) { return os << id.value_; }

 private:
  int value_ = 0;
};

using StageId = StrongId<struct StageTag>;            // a share of the network, as the user names it
using RankId = StrongId<struct RankTag>;              // a thread or process that runs stages
using ChunkId = StrongId<struct ChunkTag>;            // a contiguous part of the program; a rank may have several
using MicroBatchId = StrongId<struct MicroBatchTag>;  // 0 .. micro_batches-1 within one step
using ChannelTag = StrongId<struct ChannelTagTag>;    // tells apart the channels of one (source, destination)

}  // namespace pipeloom

#endif  // KERNELS_BASE_IDS_H_
