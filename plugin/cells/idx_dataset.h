#ifndef PLUGIN_CELLS_IDX_DATASET_H_
#define PLUGIN_CELLS_IDX_DATASET_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/base/tensor_type.h"

namespace pipeloom {

// An array of unsigned bytes in the IDX format of the MNIST files: two zero bytes, the element type (8: unsigned byte),
// the number of axes, an extent of 32 bits (big-endian) for each axis, then the elements.
struct IdxArray {
  Shape shape;
  std::string elements;
};

// InvalidArgument says what is wrong and with which numbers: not IDX, another element type, not `axes` axes, or not as
// many bytes as the extents say.
absl::StatusOr<IdxArray> ParseIdx(absl::string_view bytes, int axes);

// Digits and what they show.
struct MnistDataset {
  int64_t size() const { return images.shape[0]; }
  int64_t rows() const { return images.shape[1]; }
  int64_t columns() const { return images.shape[2]; }

  IdxArray images;  // [size, rows, columns], 0 (paper) to 255 (ink)
  IdxArray labels;  // [size]
};

// Reads FOLDER/PREFIX-images-idx3-ubyte and FOLDER/PREFIX-labels-idx1-ubyte, the names of the MNIST files. Errors name
// the file and what to do; NotFound where there is none.
absl::StatusOr<MnistDataset> LoadMnist(const std::string& folder, const std::string& prefix);

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_IDX_DATASET_H_
