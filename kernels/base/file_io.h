#ifndef KERNELS_BASE_FILE_IO_H_
#define KERNELS_BASE_FILE_IO_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pipeloom {

// The whole of a file. Errors name the path and what the system says of it (NotFound where there is no such file).
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes `parts` one after the other to a file of its own beside `path`, forces that to disk and renames it to `path`:
// at any time there is the old file or the whole new one. A link is followed. InvalidArgument where `path` is there and
// no regular file.
absl::Status WriteFileAtomically(const std::string& path, absl::Span<const absl::string_view> parts);

}  // namespace pipeloom

#endif  // KERNELS_BASE_FILE_IO_H_
