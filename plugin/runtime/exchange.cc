#include "plugin/runtime/exchange.h"

#include <cstring>
#include <utility>

#include "kernels/base/status_macros.h"

namespace pipeloom {

absl::StatusOr<Exchange> Exchange::Open(Transport& transport, ChannelTag tag, int scalars) {
  Exchange exchange;
  for (int rank = 0; rank < transport.size(); ++rank) {
    const RankId me = transport.rank();
    const RankId other(rank);
    if (other == me) continue;
    ChannelSpec spec;
    spec.tag = tag;
    spec.name = "scalars of the step";
    spec.bytes = static_cast<int64_t>(sizeof(float)) * scalars;
    Peer peer;
    peer.rank = other;
    spec.source = me;
    spec.destination = other;
    ASSIGN_OR_RETURN(peer.send, transport.OpenSend(spec));
    spec.source = other;
    spec.destination = me;
    ASSIGN_OR_RETURN(peer.receive, transport.OpenReceive(spec));
    exchange.peers_.push_back(std::move(peer));
  }
  return exchange;
}

absl::Status Exchange::Run(int64_t step, const std::vector<RankId>& owners, std::vector<float>* scalars,
                           Deadline deadline) {
  const size_t bytes = sizeof(float) * scalars->size();
  for (Peer& peer : peers_) {
    RETURN_IF_ERROR(peer.send->Acquire(step, deadline));
    if (bytes > 0) std::memcpy(peer.send->Slot(step), scalars->data(), bytes);
    peer.send->Send(step);
  }
  for (Peer& peer : peers_) {
    RETURN_IF_ERROR(peer.receive->Receive(step, deadline));
    const char* theirs = peer.receive->Slot(step);
    for (size_t i = 0; i < scalars->size(); ++i) {
      if (owners[i] == peer.rank) std::memcpy(&(*scalars)[i], theirs + i * sizeof(float), sizeof(float));
    }
    peer.receive->Release(step);
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
