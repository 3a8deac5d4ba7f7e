#include "plugin/runtime/exchange.h"

#include <cstring>
#include <utility>

#include "kernels/base/status_macros.h"

namespace pipeloom {

absl::StatusOr<Exchange> Exchange::Open(Transport& transport, ChannelTag tag, int scalars) {
  ASSIGN_OR_RETURN(PeerChannels channels,
                   PeerChannels::Open(transport, tag, "scalars of the step",
                                      static_cast<int64_t>(sizeof(float)) * scalars, /*slots=*/1));
  return Exchange(std::move(channels));
}

absl::Status Exchange::Run(int64_t step, const std::vector<RankId>& owners, std::vector<float>* scalars,
                           Deadline deadline) {
  const size_t bytes = sizeof(float) * scalars->size();
  for (PeerChannel& peer : channels_.peers()) {
    RETURN_IF_ERROR(channels_.Acquire(peer, step, deadline));
    if (bytes > 0) std::memcpy(peer.send->Slot(step), scalars->data(), bytes);
    peer.send->Send(step);
  }
  for (PeerChannel& peer : channels_.peers()) {
    RETURN_IF_ERROR(channels_.Receive(peer, step, deadline));
    const char* theirs = peer.receive->Slot(step);
    for (size_t i = 0; i < scalars->size(); ++i) {
      if (owners[i] == peer.rank) std::memcpy(&(*scalars)[i], theirs + i * sizeof(float), sizeof(float));
    }
    peer.receive->Release(step);
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
