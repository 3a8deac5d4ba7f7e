#include "kernels/base/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

absl::Status SystemError(absl::string_view doing, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", doing, " ", path));
}

absl::Status WriteAll(int file, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WriteAndSync(const std::string& path, absl::Span<const absl::string_view> parts) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return SystemError("create", path);
  absl::Status status;
  for (const absl::string_view part : parts) {
    if (status.ok()) status = WriteAll(file, part, path);
  }
  if (status.ok() && fsync(file) != 0) status = SystemError("force to disk", path);
  if (close(file) != 0 && status.ok()) status = SystemError("close", path);
  return status;
}

// What `path` points to, where it is a link to something that there is; else `path` itself.
std::string ResolveLink(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  const absl::Cleanup freer = [resolved] { std::free(resolved); };
  return resolved;
}

// A name beside `path` that no other write of this or another process uses.
std::string FreeName(const std::string& path) {
  static std::atomic<int> writes{0};
  return absl::StrCat(path, ".", getpid(), ".", writes++, ".partial");
}

// A rename is on disk once its folder is.
absl::Status SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return SystemError("open", folder);
  const absl::Cleanup closer = [file] { close(file); };
  // Some file systems cannot force a folder to disk and say EINVAL; there is nothing more to do then.
  if (fsync(file) != 0 && errno != EINVAL) return SystemError("force to disk", folder);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe is refused, not waited for
  if (file < 0) return SystemError("open", path);
  const absl::Cleanup closer = [file] { close(file); };
  struct stat info;
  if (fstat(file, &info) != 0) return SystemError("inspect", path);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " is no regular file"));
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = read(file, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("read", path);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

absl::Status WriteFileAtomically(const std::string& path, absl::Span<const absl::string_view> parts) {
  const std::string target = ResolveLink(path);
  struct stat info;
  if (stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no regular file; it would be replaced"));
  }
  const std::string partial = FreeName(target);
  absl::Status status = WriteAndSync(partial, parts);
  if (status.ok() && rename(partial.c_str(), target.c_str()) != 0) status = SystemError("rename to", path);
  if (!status.ok()) {
    unlink(partial.c_str());
    return status;
  }
  return SyncFolderOf(target);
}

}  // namespace pipeloom
