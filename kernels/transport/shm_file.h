#ifndef KERNELS_TRANSPORT_SHM_FILE_H_
#define KERNELS_TRANSPORT_SHM_FILE_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/transport/transport.h"

namespace pipeloom {

// An open file, closed at the end. -1: none.
class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd();

  int get() const { return fd_; }

 private:
  int fd_;
};

// The one lock of a file, given back at the end, or by the system where the process dies.
class FileLock {
 public:
  // DeadlineExceeded where another process keeps the lock for so long; `what` is what is locked, for that message.
  static absl::StatusOr<FileLock> Take(int fd, const std::string& what, Deadline deadline);

  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_SHM_FILE_H_
