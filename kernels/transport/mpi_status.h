#ifndef KERNELS_TRANSPORT_MPI_STATUS_H_
#define KERNELS_TRANSPORT_MPI_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pipeloom {

// The one place where a code of MPI becomes a Status: OK for MPI_SUCCESS, ResourceExhausted where memory is short,
// Internal where we called it wrongly, and Unavailable for the rest (a connection that is lost, a peer that is gone).
// `what` says what could not be done, and with which rank.
absl::Status MpiStatus(int code, absl::string_view what);

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_MPI_STATUS_H_
