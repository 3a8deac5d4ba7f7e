#include "kernels/transport/mpi_status.h"

#include <mpi.h>

#include "absl/strings/str_cat.h"

namespace pipeloom {
namespace {

absl::StatusCode CodeOf(int error_class) {
  switch (error_class) {
    case MPI_ERR_NO_MEM:
      return absl::StatusCode::kResourceExhausted;
    case MPI_ERR_ARG:
    case MPI_ERR_BUFFER:
    case MPI_ERR_COMM:
    case MPI_ERR_COUNT:
    case MPI_ERR_RANK:
    case MPI_ERR_REQUEST:
    case MPI_ERR_TAG:
    case MPI_ERR_TRUNCATE:
    case MPI_ERR_TYPE:
      return absl::StatusCode::kInternal;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

absl::Status MpiStatus(int code, absl::string_view what) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  int error_class = MPI_ERR_UNKNOWN;
  MPI_Error_class(code, &error_class);
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::Status(CodeOf(error_class), absl::StrCat(what, ": ", absl::string_view(text, length)));
}

}  // namespace pipeloom
