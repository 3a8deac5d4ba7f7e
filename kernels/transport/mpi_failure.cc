#include "kernels/transport/mpi_failure.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "kernels/transport/stop_signal.h"

namespace pipeloom {
namespace {

using Clock = Deadline::clock;

constexpr int kFailureTag = 0;
constexpr RankId kDecider(0);
// How long a rank waits for rank 0's decision: more than a busy rank takes from one kernel to the next, and little
// beside the ten seconds in which a failed run is to end.
constexpr std::chrono::milliseconds kDecisionTime(3000);
// A connected peer takes a record at once; one that does not is gone.
constexpr std::chrono::milliseconds kFlushTime(500);
// The same two after SIGTERM, which rank 0 may have died of before: SIGKILL comes a second after it.
constexpr std::chrono::milliseconds kTimeAfterStop(150);

}  // namespace

absl::Status MpiFailure::Open(MPI_Comm comm) {
  using Direction = MpiRequests::Direction;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_.value()) continue;
    ASSIGN_OR_RETURN(MPI_Request send, InitMessage(Direction::kSend, &out_, sizeof(out_), other, kFailureTag, comm,
                                                   "preparing to report failures"));
    tell_[other] = requests_.Add(send, Direction::kSend, this, other);
  }
  ASSIGN_OR_RETURN(MPI_Request receive, InitMessage(Direction::kReceive, &in_, sizeof(in_), MPI_ANY_SOURCE, kFailureTag,
                                                    comm, "preparing to hear of failures"));
  receive_ = requests_.Add(receive, Direction::kReceive, this, kReceive);
  requests_.Start(receive_);
  return absl::OkStatus();
}

void MpiFailure::OnComplete(int part, int code) {
  if (part != kReceive) {
    --under_way_;
    return;
  }
  if (code == MPI_SUCCESS) {  // otherwise some rank's last word was cut off: nothing is known from it
    const absl::Status status = ToStatus(in_);
    if (rank_ == kDecider) {
      reported_.Set(status);
    } else {
      decided_.Set(status);
    }
  }
  requests_.Start(receive_);
}

void MpiFailure::Drive() {
  if (!undecided()) return;
  if (rank_ == kDecider) {
    Decide(reported_.status());
  } else if (!asked_) {
    asked_ = true;
    give_up_ = Clock::now() + (StopRequested() ? kTimeAfterStop : kDecisionTime);
    out_ = ToFailureRecord(reported_.status());
    Tell(kDecider.value());
  } else if (Clock::now() >= give_up_) {
    Decide(reported_.status());
  }
}

void MpiFailure::Decide(const absl::Status& status) {
  out_ = ToFailureRecord(status);  // where rank 0 was asked, the same bytes again
  decided_.Set(ToStatus(out_));    // as all ranks will have it
  for (int other = 0; other < size_; ++other) {
    if (other != rank_.value() && RankId(other) != kDecider) Tell(other);
  }
  Flush();
}

void MpiFailure::Tell(int rank) {
  if (requests_.Start(tell_[rank]) == MPI_SUCCESS) ++under_way_;
}

void MpiFailure::Flush() {
  const std::chrono::milliseconds time = StopRequested() ? kTimeAfterStop : kFlushTime;
  for (const Deadline end = Clock::now() + time; under_way_ > 0 && Clock::now() < end;) {
    if (requests_.Test() != MPI_SUCCESS) return;
    std::this_thread::yield();
  }
}

}  // namespace pipeloom
