#include "kernels/transport/shm_arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

// The first word of an address; its number changes with the layout of what is shared.
constexpr char kFormat[] = "pipeloom-shm-1 pid %" PRId64 " start %" PRIu64 " fd %d inode %" PRIu64 "\n";

// An object that never has a name, so that no end of the process leaves it behind. Not memfd_create: of that,
// /dev/shm's limit would not be kept, nor known beforehand.
absl::StatusOr<UniqueFd> OpenNameless() {
  UniqueFd file(open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.get() >= 0) return file;
  return absl::UnavailableError(absl::ErrnoToStatus(errno, "cannot make shared memory in /dev/shm").message());
}

absl::Status NoRoomError(int fd, int64_t bytes, absl::string_view what) {
  struct statvfs room = {};
  fstatvfs(fd, &room);
  const auto in_bytes = [&](uint64_t blocks) { return blocks * room.f_frsize; };
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " needs ", bytes, " bytes of shared memory, and of the ", in_bytes(room.f_blocks),
                   " bytes of /dev/shm ", in_bytes(room.f_bavail),
                   " are free; make /dev/shm larger (containers: --shm-size), or choose another transport"));
}

// Whether a file system of a limited size has no room; asked beforehand, lest the pages of a request that cannot end
// well are all taken first.
bool IsTooLarge(int fd, int64_t bytes) {
  struct statvfs room = {};
  return fstatvfs(fd, &room) == 0 && room.f_blocks > 0 && static_cast<uint64_t>(bytes) / room.f_frsize > room.f_bavail;
}

}  // namespace

std::string ArenaAddress::ToText() const {
  char line[160];
  std::snprintf(line, sizeof(line), kFormat, maker.pid, maker.start, fd, inode);
  return line;
}

absl::StatusOr<ArenaAddress> ArenaAddress::FromText(absl::string_view text) {
  ArenaAddress address;
  const std::string line(text);
  static constexpr char kScan[] = "pipeloom-shm-1 pid %" SCNd64 " start %" SCNu64 " fd %d inode %" SCNu64;
  if (std::sscanf(line.c_str(), kScan, &address.maker.pid, &address.maker.start, &address.fd, &address.inode) != 4 ||
      address.ToText() != line) {
    return absl::NotFoundError(absl::StrCat("no address of shared memory: '", line, "'"));
  }
  return address;
}

ShmMapping::~ShmMapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

absl::StatusOr<std::unique_ptr<ShmArena>> ShmArena::Create(int64_t bytes) {
  ArenaAddress address;
  ASSIGN_OR_RETURN(address.maker, ThisProcess());
  ASSIGN_OR_RETURN(UniqueFd file, OpenNameless());
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) return absl::ErrnoToStatus(errno, "fstat of shared memory");
  address.fd = file.get();
  address.inode = info.st_ino;
  auto arena = std::unique_ptr<ShmArena>(new ShmArena(std::move(file), address));
  RETURN_IF_ERROR(arena->Grow(bytes, "the list of ranks").status());
  return arena;
}

absl::StatusOr<std::unique_ptr<ShmArena>> ShmArena::Attach(const ArenaAddress& address) {
  const absl::Status gone =
      absl::NotFoundError(absl::StrCat("the shared memory of process ", address.maker.pid, " is gone"));
  if (!IsAlive(address.maker)) return gone;
  const std::string path = absl::StrCat("/proc/", address.maker.pid, "/fd/", address.fd);
  const auto is_arena = [&](const struct stat& info) { return S_ISREG(info.st_mode) && info.st_ino == address.inode; };
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && !is_arena(info)) return gone;  // not to be opened: it may be anything
  UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) return gone;
  if (file.get() < 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot open ", path, ", the shared memory of the ranks; start all as one user"));
  }
  if (fstat(file.get(), &info) != 0 || !is_arena(info)) return gone;
  return std::unique_ptr<ShmArena>(new ShmArena(std::move(file), address));
}

int64_t ShmArena::RoundUpToPages(int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

absl::StatusOr<int64_t> ShmArena::Bytes() const {
  struct stat info = {};
  if (fstat(file_.get(), &info) != 0) return absl::ErrnoToStatus(errno, "fstat of shared memory");
  return info.st_size;
}

absl::StatusOr<FileLock> ShmArena::Lock(Deadline deadline) const {
  return FileLock::Take(file_.get(), absl::StrCat("the shared memory of process ", address_.maker.pid), deadline);
}

absl::StatusOr<int64_t> ShmArena::Grow(int64_t bytes, absl::string_view what) {
  ASSIGN_OR_RETURN(const int64_t offset, Bytes());
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;
  if (bytes > kMost - offset || IsTooLarge(file_.get(), bytes)) return NoRoomError(file_.get(), bytes, what);
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(file_.get(), offset, RoundUpToPages(bytes));
  if (error == ENOSPC || error == EFBIG) return NoRoomError(file_.get(), bytes, what);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat(what, ": cannot get ", bytes, " bytes of /dev/shm"));
  return offset;
}

absl::StatusOr<ShmMapping> ShmArena::Map(int64_t offset, int64_t bytes) const {
  // With the pages' table entries, so that no message pays for them.
  void* data =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_.get(), offset);
  if (data == MAP_FAILED) return absl::ErrnoToStatus(errno, absl::StrCat("cannot map ", bytes, " bytes"));
  return ShmMapping(static_cast<char*>(data), static_cast<size_t>(bytes));
}

absl::Status ShmArena::Read(int64_t offset, void* to, size_t bytes) const {
  if (pread(file_.get(), to, bytes, offset) == static_cast<ssize_t>(bytes)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("shared memory cannot be read at ", offset));
}

}  // namespace pipeloom
