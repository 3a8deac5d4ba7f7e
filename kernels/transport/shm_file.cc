#include "kernels/transport/shm_file.h"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"

namespace pipeloom {

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

// Polls, since a blocking flock knows no deadline; the lock is kept for microseconds.
absl::StatusOr<FileLock> FileLock::Take(int fd, const std::string& what, Deadline deadline) {
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", what));
    if (Deadline::clock::now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(what, " stays locked; see which process has it open, and whether that one is stopped"));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return FileLock(fd);
}

FileLock::~FileLock() {
  if (fd_ >= 0) flock(fd_, LOCK_UN);
}

}  // namespace pipeloom
