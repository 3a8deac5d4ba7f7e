#include "kernels/transport/mpi_process.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"
#include "kernels/transport/mpi.h"
#include "kernels/transport/mpi_status.h"
#include "kernels/transport/stop_signal.h"

namespace pipeloom {
namespace {

using Clock = Deadline::clock;

constexpr int kMeetTag = 0;
// How long a rank that failed waits for the others to say theirs.
constexpr std::chrono::seconds kLastWords(2);

// How long a wait goes on after SIGTERM: the failure for which it was sent may still come.
constexpr std::chrono::milliseconds kTimeAfterStop(300);

// Ends the process if it is not destroyed by the deadline: for calls of MPI that can hang and cannot be interrupted.
class Watchdog {
 public:
  Watchdog(Deadline deadline, const char* call, int exit_code = 1)
      : thread_([this, deadline, call, exit_code] {
          std::unique_lock<std::mutex> lock(mutex_);
          if (done_changed_.wait_until(lock, deadline, [this] { return done_; })) return;
          std::fprintf(stderr, "%s did not return before its deadline; see what kept the other ranks\n", call);
          _exit(exit_code);
        }) {}
  ~Watchdog() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      done_ = true;
    }
    done_changed_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;  // under mutex_
  std::thread thread_;
};

bool Is(int (*state)(int*)) {
  int is = 0;
  state(&is);
  return is != 0;
}

// Lets MPI move on until `request` is complete. False at the deadline; Aborted soon after SIGTERM.
absl::StatusOr<bool> TestUntil(MPI_Request* request, Deadline deadline, absl::string_view what) {
  Deadline stopped = Deadline::max();
  while (true) {
    int complete = 0;
    RETURN_IF_ERROR(MpiStatus(MPI_Test(request, &complete, MPI_STATUS_IGNORE), what));
    if (complete != 0) return true;
    const Deadline now = Clock::now();
    if (now >= deadline) return false;
    if (StopRequested()) {
      stopped = std::min(stopped, now);
      if (now - stopped >= kTimeAfterStop) {
        return absl::AbortedError(
            absl::StrCat(what, ": ended when the launcher sent SIGTERM; see which rank died first"));
      }
    }
    std::this_thread::yield();
  }
}

absl::StatusOr<bool> AllRanksCome(Deadline deadline) {
  MPI_Request barrier = MPI_REQUEST_NULL;
  RETURN_IF_ERROR(MpiStatus(MPI_Ibarrier(MPI_COMM_WORLD, &barrier), "waiting for all ranks"));
  return TestUntil(&barrier, deadline, "waiting for all ranks");
}

}  // namespace

absl::Status InitMpi(Deadline deadline) {
  if (Is(MPI_Finalized)) {
    return absl::FailedPreconditionError("MPI was finalized in this process, and starts only once; start anew");
  }
  if (Is(MPI_Initialized)) return absl::OkStatus();
  Watchdog watchdog(deadline, "MPI_Init");
  int provided = MPI_THREAD_SINGLE;
  RETURN_IF_ERROR(MpiStatus(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init"));
  if (provided < MPI_THREAD_FUNNELED) {
    return absl::FailedPreconditionError("this MPI allows no threads at all; Pipeloom needs MPI_THREAD_FUNNELED");
  }
  return MpiStatus(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Init");
}

absl::Status MeetAllRanks(Deadline deadline) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<MPI_Request> sends(size, MPI_REQUEST_NULL), receives(size, MPI_REQUEST_NULL);
  for (int other = 0; other < size; ++other) {
    const std::string what = absl::StrCat("rank ", rank, ": meeting rank ", other);
    RETURN_IF_ERROR(
        MpiStatus(MPI_Irecv(nullptr, 0, MPI_BYTE, other, kMeetTag, MPI_COMM_WORLD, &receives[other]), what));
    RETURN_IF_ERROR(MpiStatus(MPI_Isend(nullptr, 0, MPI_BYTE, other, kMeetTag, MPI_COMM_WORLD, &sends[other]), what));
  }
  std::vector<int> missing;
  for (int other = 0; other < size; ++other) {
    const std::string what = absl::StrCat("rank ", rank, ": meeting rank ", other);
    ASSIGN_OR_RETURN(const bool sent, TestUntil(&sends[other], deadline, what));
    ASSIGN_OR_RETURN(const bool received, TestUntil(&receives[other], deadline, what));
    if (!sent || !received) missing.push_back(other);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("rank ", rank, ": no answer at the start from rank ",
                                                  absl::StrJoin(missing, ", "), "; see what kept it there"));
}

absl::StatusOr<MPI_Comm> DuplicateWorld(Deadline deadline) {
  // MPI may write to it even after the deadline; it is then MPI's until the process ends.
  auto comm = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
  MPI_Request request = MPI_REQUEST_NULL;
  RETURN_IF_ERROR(MpiStatus(MPI_Comm_idup(MPI_COMM_WORLD, comm.get(), &request), "making a communicator"));
  const absl::StatusOr<bool> made = TestUntil(&request, deadline, "making a communicator");
  if (!made.ok() || !*made) {
    comm.release();
    RETURN_IF_ERROR(made.status());
    return absl::DeadlineExceededError("making a communicator: not all ranks took part before the deadline");
  }
  RETURN_IF_ERROR(MpiStatus(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN), "making a communicator"));
  return *comm;
}

absl::Status FinalizeMpi(std::chrono::milliseconds deadline) {
  if (!Is(MPI_Initialized) || Is(MPI_Finalized)) return absl::OkStatus();
  const Deadline end = Clock::now() + deadline;
  ASSIGN_OR_RETURN(const bool all_came, AllRanksCome(end));
  if (!all_came) {
    return absl::DeadlineExceededError(
        absl::StrCat("not all ranks came to their end within ", deadline.count(), " ms; see what kept them"));
  }
  // All are there, so it takes no longer than this, however little of the deadline is left.
  Watchdog watchdog(std::max(end, Clock::now() + std::chrono::seconds(10)), "MPI_Finalize");
  return MpiStatus(MPI_Finalize(), "MPI_Finalize");
}

void SayLastWordsToMpi(int exit_code) {
  PIPELOOM_CHECK(exit_code != 0, "where all is well FinalizeMpi comes last");
  std::fflush(nullptr);
  if (!Is(MPI_Initialized) || Is(MPI_Finalized)) return;
  const Deadline end = Clock::now() + kLastWords;
  Watchdog watchdog(end + kLastWords, "MPI_Test", exit_code);  // after a lost connection Open MPI promises nothing
  AllRanksCome(end).IgnoreError();
}

void LeaveMpi(int exit_code) {
  SayLastWordsToMpi(exit_code);
  _exit(exit_code);
}

}  // namespace pipeloom
