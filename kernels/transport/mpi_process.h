#ifndef KERNELS_TRANSPORT_MPI_PROCESS_H_
#define KERNELS_TRANSPORT_MPI_PROCESS_H_

#include <mpi.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/transport/transport.h"

namespace pipeloom {

// What MPI does once a process and with all ranks, each within a deadline. See also mpi.h.

// Initializes MPI unless it is, with errors as return codes. FailedPrecondition once it was finalized.
absl::Status InitMpi(Deadline deadline);

// Exchanges an empty message with every rank, so that all connections stand: a failure later needs no more than a
// message. DeadlineExceeded naming the ranks that did not answer.
absl::Status MeetAllRanks(Deadline deadline);

// A communicator of all ranks, in their order, whose messages meet no others. It is never freed: a late message of an
// old communicator could then reach a new one.
absl::StatusOr<MPI_Comm> DuplicateWorld(Deadline deadline);

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_MPI_PROCESS_H_
