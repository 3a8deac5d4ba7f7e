#ifndef KERNELS_TRANSPORT_MPI_FAILURE_H_
#define KERNELS_TRANSPORT_MPI_FAILURE_H_

#include <vector>

#include "absl/status/status.h"
#include "kernels/base/ids.h"
#include "kernels/transport/failure.h"
#include "kernels/transport/failure_record.h"
#include "kernels/transport/mpi_requests.h"
#include "kernels/transport/transport.h"

namespace pipeloom {

// How all ranks come to the same first failure. Rank 0 decides which one was first:
//
//   rank 2: Report(s) --record--> rank 0: decided = s --record--> ranks 1, 2, ...: decided = s
//
// A rank that gets no decision in three seconds (rank 0 is stopped, dead or computing) tells all others itself.
// Everything but Report and decided is for the rank's own thread.
class MpiFailure : public MpiListener {
 public:
  // `requests` outlives the open requests of this object.
  MpiFailure(RankId rank, int size, MpiRequests& requests)
      : rank_(rank), size_(size), requests_(requests), tell_(size, kNoRequest) {}

  absl::Status Open(MPI_Comm comm);

  // This rank has failed; the first report counts. Any thread.
  void Report(const absl::Status& status) { reported_.Set(status); }
  // The failure of all ranks, once there is one.
  const Failure& decided() const { return decided_; }
  // Whether there is a report, but no decision.
  bool undecided() const { return reported_.failed() && !decided_.failed(); }

  // Hands a report on and decides; called after each test of the requests.
  void Drive();

 private:
  static constexpr int kNoRequest = -1;
  static constexpr int kReceive = -1;  // the part of the one receive; others are the rank told

  void OnComplete(int part, int code) override;
  void Decide(const absl::Status& status);
  void Tell(int rank);
  // Lets the records go out: after a failure nobody may drive MPI again.
  void Flush();

  const RankId rank_;
  const int size_;
  MpiRequests& requests_;
  Failure reported_;
  Failure decided_;
  FailureRecord out_ = {};
  FailureRecord in_ = {};
  int receive_ = kNoRequest;
  std::vector<int> tell_;  // by rank: the request that sends `out_` there
  int under_way_ = 0;      // records
  bool asked_ = false;     // rank 0 has been told
  Deadline give_up_;
};

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_MPI_FAILURE_H_
