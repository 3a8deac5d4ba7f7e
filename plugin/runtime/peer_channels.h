#ifndef PLUGIN_RUNTIME_PEER_CHANNELS_H_
#define PLUGIN_RUNTIME_PEER_CHANNELS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/transport/transport.h"

namespace pipeloom {

// A channel to another rank and one from it.
struct PeerChannel {
  RankId rank;  // of the other
  ChannelSpec send_spec;
  ChannelSpec receive_spec;
  std::unique_ptr<SendEnd> send;
  std::unique_ptr<ReceiveEnd> receive;
};

// Those of all other ranks.
class PeerChannels {
 public:
  // Opens them in the order of ranks, all with `tag` and equal slots.
  static absl::StatusOr<PeerChannels> Open(Transport& transport, ChannelTag tag, const std::string& name, int64_t bytes,
                                           int slots);

  std::vector<PeerChannel>& peers() { return peers_; }
  PeerChannel& peer(RankId rank) { return peers_[static_cast<size_t>(rank.value() - (rank < me_ ? 0 : 1))]; }
  RankId me() const { return me_; }

  absl::Status Acquire(PeerChannel& peer, int64_t message, Deadline deadline) {
    return Note(peer.send->Acquire(message, deadline), peer.send_spec);
  }
  absl::Status Receive(PeerChannel& peer, int64_t message, Deadline deadline) {
    return Note(peer.receive->Receive(message, deadline), peer.receive_spec);
  }
  // The channel whose wait failed; null if none did.
  const ChannelSpec* failed() const { return failed_; }

 private:
  explicit PeerChannels(RankId me) : me_(me) {}
  absl::Status Note(absl::Status status, const ChannelSpec& spec) {
    if (!status.ok()) failed_ = &spec;
    return status;
  }

  RankId me_;
  std::vector<PeerChannel> peers_;  // in order, without this rank
  const ChannelSpec* failed_ = nullptr;
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_PEER_CHANNELS_H_
