#ifndef KERNELS_TRANSPORT_MPI_ENGINE_H_
#define KERNELS_TRANSPORT_MPI_ENGINE_H_

#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/transport/mpi_channel.h"
#include "kernels/transport/mpi_failure.h"
#include "kernels/transport/mpi_requests.h"
#include "kernels/transport/transport.h"
#include "kernels/transport/wait.h"

namespace pipeloom {

// What the transport and the ends of one rank share: communicators, requests, channels and the failure. It lives as
// long as the transport or an end does.
class MpiEngine {
 public:
  static absl::StatusOr<std::shared_ptr<MpiEngine>> Make(Deadline deadline);
  ~MpiEngine();
  MpiEngine(const MpiEngine&) = delete;
  MpiEngine& operator=(const MpiEngine&) = delete;

  RankId rank() const { return rank_; }
  int size() const { return size_; }
  const Failure& failure() const { return failure_->decided(); }

  absl::StatusOr<MpiSendChannel*> OpenSend(const ChannelSpec& spec);
  absl::StatusOr<MpiReceiveChannel*> OpenReceive(const ChannelSpec& spec);

  void Progress();
  void Fail(const absl::Status& status);

  // WaitUntil `ready`, with progress at each poll.
  template <typename Ready>
  absl::Status Wait(const Ready& ready, Deadline deadline, const WaitReason& reason) {
    if (failure_->undecided()) Settle();
    const auto driven = [&] {
      if (ready()) return true;
      Progress();
      return ready();
    };
    return WaitUntil(driven, failure(), deadline, reason);
  }

 private:
  MpiEngine(RankId rank, int size, int largest_tag) : rank_(rank), size_(size), largest_tag_(largest_tag) {}

  absl::Status CheckOpen(const ChannelSpec& spec, ChannelEnd end);
  MpiChannelContext Context();
  // Drives this rank's failure until it is decided.
  void Settle();

  const RankId rank_;
  const int size_;
  const int largest_tag_;
  const std::thread::id thread_ = std::this_thread::get_id();
  MpiRequests requests_;
  // On the heap each, since MPI may keep writing into one after this object's end.
  std::unique_ptr<MpiFailure> failure_;
  std::vector<std::unique_ptr<MpiChannel>> channels_;
  absl::flat_hash_set<std::tuple<RankId, RankId, ChannelTag, ChannelEnd>> opened_;
  MPI_Comm data_ = MPI_COMM_NULL;     // from source to destination: the spec, then the messages
  MPI_Comm credits_ = MPI_COMM_NULL;  // from destination to source: the spec, then the credits
};

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_MPI_ENGINE_H_
