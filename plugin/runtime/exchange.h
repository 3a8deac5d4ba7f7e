#ifndef PLUGIN_RUNTIME_EXCHANGE_H_
#define PLUGIN_RUNTIME_EXCHANGE_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "plugin/runtime/peer_channels.h"

namespace pipeloom {

// Once a step, every rank tells every other one its scalars. It ends on a rank only after all ranks have come to it, so
// that no rank updates a parameter in a step that another rank did not get through.
class Exchange {
 public:
  // Opens a channel to and from each other rank, all with `tag`, for `scalars` numbers of f32.
  static absl::StatusOr<Exchange> Open(Transport& transport, ChannelTag tag, int scalars);

  // `scalars[i]` is given by rank `owners[i]` and is the same on all ranks afterwards.
  absl::Status Run(int64_t step, const std::vector<RankId>& owners, std::vector<float>* scalars, Deadline deadline);

  const ChannelSpec* failed_channel() const { return channels_.failed(); }

 private:
  explicit Exchange(PeerChannels channels) : channels_(std::move(channels)) {}

  PeerChannels channels_;
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_EXCHANGE_H_
