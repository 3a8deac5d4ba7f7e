#include "plugin/runtime/peer_channels.h"

#include <utility>

#include "kernels/base/status_macros.h"

namespace pipeloom {

absl::StatusOr<PeerChannels> PeerChannels::Open(Transport& transport, ChannelTag tag, const std::string& name,
                                                int64_t bytes, int slots) {
  PeerChannels channels(transport.rank());
  const RankId me = channels.me_;
  for (int rank = 0; rank < transport.size(); ++rank) {
    const RankId other(rank);
    if (other == me) continue;
    PeerChannel peer;
    peer.rank = other;
    peer.send_spec = {me, other, tag, name, bytes, slots};
    peer.receive_spec = {other, me, tag, name, bytes, slots};
    ASSIGN_OR_RETURN(peer.send, transport.OpenSend(peer.send_spec));
    ASSIGN_OR_RETURN(peer.receive, transport.OpenReceive(peer.receive_spec));
    channels.peers_.push_back(std::move(peer));
  }
  return channels;
}

}  // namespace pipeloom
