#ifndef KERNELS_TRANSPORT_SHM_ARENA_H_
#define KERNELS_TRANSPORT_SHM_ARENA_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/transport/shm_file.h"
#include "kernels/transport/shm_process.h"

namespace pipeloom {

// Where an arena is found: it has no name, but its maker has it open.
struct ArenaAddress {
  ProcessId maker;
  int fd = -1;         // in the maker
  uint64_t inode = 0;  // of the file that `fd` is, as long as it is the arena

  // One line of text and back; NotFound where the text is no address.
  std::string ToText() const;
  static absl::StatusOr<ArenaAddress> FromText(absl::string_view text);
};

// Pages of an arena in this process's memory, for reading and writing.
class ShmMapping {
 public:
  ShmMapping() = default;
  ShmMapping(char* data, size_t bytes) : data_(data), bytes_(bytes) {}
  ShmMapping(ShmMapping&& other) noexcept { *this = std::move(other); }
  ShmMapping& operator=(ShmMapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~ShmMapping();

  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

// A growing piece of shared memory. All its pages are there: nothing that fits when it is asked for ends in a SIGBUS.
class ShmArena {
 public:
  // A new one of `bytes` bytes (rounded up to pages), all 0. Unavailable where the system has no shared memory.
  static absl::StatusOr<std::unique_ptr<ShmArena>> Create(int64_t bytes);
  // NotFound where there is none, or no longer.
  static absl::StatusOr<std::unique_ptr<ShmArena>> Attach(const ArenaAddress& address);

  static int64_t RoundUpToPages(int64_t bytes);

  const ArenaAddress& address() const { return address_; }
  absl::StatusOr<int64_t> Bytes() const;
  absl::StatusOr<FileLock> Lock(Deadline deadline) const;

  // Adds `bytes` bytes (rounded up to pages) and gives the offset of the first; for who has the lock. ResourceExhausted
  // where shared memory has no room for `what`.
  absl::StatusOr<int64_t> Grow(int64_t bytes, absl::string_view what);
  // `offset` is one that Grow gave, or 0.
  absl::StatusOr<ShmMapping> Map(int64_t offset, int64_t bytes) const;
  absl::Status Read(int64_t offset, void* to, size_t bytes) const;

 private:
  ShmArena(UniqueFd file, const ArenaAddress& address) : file_(std::move(file)), address_(address) {}

  const UniqueFd file_;
  const ArenaAddress address_;
};

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_SHM_ARENA_H_
