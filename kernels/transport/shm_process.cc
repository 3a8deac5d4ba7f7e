#include "kernels/transport/shm_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/transport/shm_file.h"

namespace pipeloom {
namespace {

struct ProcessState {
  char state = '?';
  int64_t threads = 0;
  uint64_t start = 0;
};

// From /proc/<pid>/stat: "1234 (name, which may hold anything) S" and numbers, of which the 20th field of the line is
// that of the threads and the 22nd the start. NotFound where there is no such process.
absl::StatusOr<ProcessState> ReadState(int64_t pid) {
  char path[48];
  std::snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, path);
  char line[1024];
  const ssize_t bytes = read(file.get(), line, sizeof(line) - 1);
  if (bytes < 0) return errno == ESRCH ? absl::NotFoundError(path) : absl::ErrnoToStatus(errno, path);
  line[bytes] = '\0';
  ProcessState result;
  const char* name_end = std::strrchr(line, ')');
  if (name_end == nullptr ||
      std::sscanf(name_end,
                  ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNd64 " %*s %" SCNu64,
                  &result.state, &result.threads, &result.start) != 3) {
    return absl::InternalError(absl::StrCat(path, " has no start time: ", line));
  }
  return result;
}

}  // namespace

absl::StatusOr<ProcessId> ThisProcess() {
  const absl::StatusOr<ProcessState> state = ReadState(getpid());
  if (!state.ok()) {
    return absl::UnavailableError(
        absl::StrCat("shared memory between processes needs /proc: ", state.status().message()));
  }
  return ProcessId{getpid(), state->start};
}

bool IsAlive(const ProcessId& process) {
  const absl::StatusOr<ProcessState> state = ReadState(process.pid);
  if (absl::IsNotFound(state.status())) return false;
  if (!state.ok()) return true;  // too many open files, say: nothing is known
  if (state->start != process.start) return false;
  // A process whose first thread alone has ended is shown as a zombie too.
  const bool is_zombie = state->state == 'Z' && state->threads <= 1;
  return !is_zombie && state->state != 'X';
}

}  // namespace pipeloom
