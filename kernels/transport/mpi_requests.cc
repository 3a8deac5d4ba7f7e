#include "kernels/transport/mpi_requests.h"

#include <limits>

#include "kernels/base/status_macros.h"
#include "kernels/transport/mpi_status.h"

namespace pipeloom {
namespace {

// A message that is too long for MPI's int counts is one element of a type: so many of these pieces, and the rest.
constexpr int64_t kPiece = int64_t{1} << 30;

int MakeLongType(int64_t bytes, MPI_Datatype* type) {
  MPI_Datatype piece = MPI_DATATYPE_NULL;
  int code = MPI_Type_contiguous(static_cast<int>(kPiece), MPI_BYTE, &piece);
  if (code != MPI_SUCCESS) return code;
  int lengths[] = {static_cast<int>(bytes / kPiece), static_cast<int>(bytes % kPiece)};
  MPI_Aint places[] = {0, static_cast<MPI_Aint>(bytes / kPiece * kPiece)};
  MPI_Datatype types[] = {piece, MPI_BYTE};
  code = MPI_Type_create_struct(2, lengths, places, types, type);
  if (code == MPI_SUCCESS) code = MPI_Type_commit(type);
  MPI_Type_free(&piece);
  return code;
}

}  // namespace

int MpiRequests::Add(MPI_Request request, Direction direction, MpiListener* listener, int part) {
  requests_.push_back(request);
  owners_.push_back({direction, listener, part});
  completed_.resize(requests_.size());
  states_.resize(requests_.size());
  return static_cast<int>(requests_.size()) - 1;
}

int MpiRequests::Test() {
  int count = 0;
  const int code =
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, completed_.data(), states_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
  if (count == MPI_UNDEFINED) return MPI_SUCCESS;  // nothing is active
  for (int i = 0; i < count; ++i) {
    const Owner& owner = owners_[completed_[i]];
    owner.listener->OnComplete(owner.part, code == MPI_SUCCESS ? MPI_SUCCESS : states_[i].MPI_ERROR);
  }
  return MPI_SUCCESS;
}

bool MpiRequests::Close() {
  bool closed = true;
  for (size_t i = 0; i < requests_.size(); ++i) {
    int idle = 0;
    MPI_Request_get_status(requests_[i], &idle, MPI_STATUS_IGNORE);
    if (idle == 0 && owners_[i].direction == Direction::kReceive) {
      MPI_Cancel(&requests_[i]);
      MPI_Request_get_status(requests_[i], &idle, MPI_STATUS_IGNORE);
    }
    if (idle != 0) MPI_Request_free(&requests_[i]);
    closed = closed && idle != 0;
  }
  requests_.clear();
  owners_.clear();
  return closed;
}

absl::StatusOr<MPI_Request> InitMessage(MpiRequests::Direction direction, void* data, int64_t bytes, int rank, int tag,
                                        MPI_Comm comm, absl::string_view what) {
  MPI_Datatype type = MPI_BYTE;
  int count = 1;
  if (bytes > std::numeric_limits<int>::max()) {
    RETURN_IF_ERROR(MpiStatus(MakeLongType(bytes, &type), what));
  } else {
    count = static_cast<int>(bytes);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = direction == MpiRequests::Direction::kSend
                       ? MPI_Send_init(data, count, type, rank, tag, comm, &request)
                       : MPI_Recv_init(data, count, type, rank, tag, comm, &request);
  RETURN_IF_ERROR(MpiStatus(code, what));
  if (type != MPI_BYTE) MPI_Type_free(&type);  // the request keeps it
  return request;
}

}  // namespace pipeloom
