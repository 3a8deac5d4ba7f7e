#ifndef KERNELS_TRANSPORT_MPI_REQUESTS_H_
#define KERNELS_TRANSPORT_MPI_REQUESTS_H_

#include <mpi.h>

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipeloom {

// Who waits for requests; its `part` tells them apart.
class MpiListener {
 public:
  virtual ~MpiListener() = default;
  // A request is complete, and inactive again. `code` is MPI_SUCCESS, or that of its error.
  virtual void OnComplete(int part, int code) = 0;
};

// All requests of one rank, and the one place that tests them. They are persistent: made when a channel opens, started
// for each message, so a message allocates nothing of ours.
class MpiRequests {
 public:
  enum class Direction { kSend, kReceive };

  MpiRequests() = default;
  MpiRequests(const MpiRequests&) = delete;
  MpiRequests& operator=(const MpiRequests&) = delete;

  // Takes over an inactive persistent request; its number.
  int Add(MPI_Request request, Direction direction, MpiListener* listener, int part);
  // MPI's code.
  int Start(int request) { return MPI_Start(&requests_[request]); }

  // One MPI_Testsome over what is active. MPI's code, where it is not about one request.
  int Test();

  // Frees all requests, after receives without a message were cancelled. False if some are under way still: then their
  // memory belongs to MPI until the process ends.
  bool Close();

 private:
  struct Owner {
    Direction direction;
    MpiListener* listener;
    int part;
  };
  std::vector<MPI_Request> requests_;
  std::vector<Owner> owners_;       // by request
  std::vector<int> completed_;      // filled by MPI_Testsome, as are
  std::vector<MPI_Status> states_;  // these
};

// A persistent request for a message of `bytes`, which may be more than MPI's counts hold.
absl::StatusOr<MPI_Request> InitMessage(MpiRequests::Direction direction, void* data, int64_t bytes, int rank, int tag,
                                        MPI_Comm comm, absl::string_view what);

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_MPI_REQUESTS_H_
