#ifndef PLUGIN_RUNTIME_BULK_H_
#define PLUGIN_RUNTIME_BULK_H_

#include <chrono>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "plugin/runtime/peer_channels.h"

namespace pipeloom {

// Moves bytes of any number between ranks, in pieces: parameters, outputs and texts, all of which both sides know the
// size of. Both make their calls in the same order.
class Bulk {
 public:
  static absl::StatusOr<Bulk> Open(Transport& transport, ChannelTag tag, std::chrono::milliseconds deadline);

  // Each of their waits has the deadline.
  absl::Status Send(RankId to, const void* data, int64_t bytes);
  absl::Status Receive(RankId from, void* data, int64_t bytes);
  // To all other ranks from rank `from`; called by every rank.
  absl::Status Broadcast(RankId from, void* data, int64_t bytes);

  const ChannelSpec* failed_channel() const { return channels_.failed(); }

 private:
  struct Messages {
    int64_t sent = 0;
    int64_t received = 0;
  };

  Bulk(PeerChannels channels, int ranks, std::chrono::milliseconds deadline)
      : channels_(std::move(channels)), messages_(static_cast<size_t>(ranks)), deadline_(deadline) {}
  absl::Status SendPiece(PeerChannel& peer, const char* data, int64_t bytes);

  PeerChannels channels_;
  std::vector<Messages> messages_;  // by rank
  std::chrono::milliseconds deadline_;
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_BULK_H_
