#include "plugin/cells/idx_dataset.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/file_io.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

constexpr int kUnsignedByte = 8;
constexpr size_t kMagicBytes = 4;
constexpr size_t kExtentBytes = 4;

int ByteAt(absl::string_view bytes, size_t at) { return static_cast<unsigned char>(bytes[at]); }

int64_t ExtentAt(absl::string_view bytes, size_t at) {
  int64_t extent = 0;
  for (size_t i = 0; i < kExtentBytes; ++i) extent = extent << 8 | ByteAt(bytes, at + i);
  return extent;
}

absl::StatusOr<IdxArray> ReadIdx(const std::string& path, int axes) {
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  if (absl::IsNotFound(bytes.status())) {
    return Annotate(bytes.status(), absl::StrCat("a data file is missing; put it there, uncompressed, or give the "
                                                 "folder of another data set"));
  }
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<IdxArray> array = ParseIdx(*bytes, axes);
  if (!array.ok()) return Annotate(array.status(), absl::StrCat(path, " is damaged or no data file; fetch it again"));
  return array;
}

}  // namespace

absl::StatusOr<IdxArray> ParseIdx(absl::string_view bytes, int axes) {
  const size_t header = kMagicBytes + kExtentBytes * static_cast<size_t>(axes);
  if (bytes.size() < header) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it has ", bytes.size(), " bytes, and the header alone of an IDX file with ", axes, " axes has ", header));
  }
  if (ByteAt(bytes, 0) != 0 || ByteAt(bytes, 1) != 0 || ByteAt(bytes, 2) != kUnsignedByte || ByteAt(bytes, 3) != axes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it begins with the bytes ", ByteAt(bytes, 0), " ", ByteAt(bytes, 1), " ", ByteAt(bytes, 2), " ",
        ByteAt(bytes, 3), "; an IDX file of unsigned bytes with ", axes, " axes begins with 0 0 8 ", axes));
  }
  IdxArray array;
  const int64_t present = static_cast<int64_t>(bytes.size() - header);
  __int128 wanted = 1;  // at most (2^32)^3
  for (int axis = 0; axis < axes; ++axis) {
    array.shape.push_back(ExtentAt(bytes, kMagicBytes + kExtentBytes * static_cast<size_t>(axis)));
    wanted *= array.shape.back();
  }
  if (wanted != present) {
    return absl::InvalidArgumentError(absl::StrCat("its header says ", ShapeToString(array.shape),
                                                   " elements of one byte, but ", present, " bytes follow"));
  }
  array.elements = std::string(bytes.substr(header));
  return array;
}

absl::StatusOr<MnistDataset> LoadMnist(const std::string& folder, const std::string& prefix) {
  const std::string images_path = absl::StrCat(folder, "/", prefix, "-images-idx3-ubyte");
  const std::string labels_path = absl::StrCat(folder, "/", prefix, "-labels-idx1-ubyte");
  MnistDataset dataset;
  ASSIGN_OR_RETURN(dataset.images, ReadIdx(images_path, 3));
  ASSIGN_OR_RETURN(dataset.labels, ReadIdx(labels_path, 1));
  if (dataset.size() != dataset.labels.shape[0]) {
    return absl::InvalidArgumentError(absl::StrCat(images_path, " has ", dataset.size(), " images, but ", labels_path,
                                                   " has ", dataset.labels.shape[0],
                                                   " labels; take both files from one data set"));
  }
  if (dataset.size() == 0) return absl::InvalidArgumentError(absl::StrCat(images_path, " has no images"));
  return dataset;
}

}  // namespace pipeloom
