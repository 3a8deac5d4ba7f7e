#ifndef PLUGIN_RUNTIME_EXCHANGE_H_
#define PLUGIN_RUNTIME_EXCHANGE_H_

#include <chrono>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/transport/transport.h"

namespace pipeloom {

// Once a step, every rank tells every other one its scalars. It ends on a rank only after all ranks have come to it, so
// that no rank updates a parameter in a step that another rank did not get through.
class Exchange {
 public:
  // Opens a channel to and from each other rank, all with `tag`, for `scalars` numbers of f32.
  static absl::StatusOr<Exchange> Open(Transport& transport, ChannelTag tag, int scalars);

  // `scalars[i]` is given by rank `owners[i]` and is the same on all ranks afterwards.
  absl::Status Run(int64_t step, const std::vector<RankId>& owners, std::vector<float>* scalars, Deadline deadline);

 private:
  struct Peer {
    RankId rank;
    std::unique_ptr<SendEnd> send;
    std::unique_ptr<ReceiveEnd> receive;
  };
  std::vector<Peer> peers_;
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_EXCHANGE_H_
