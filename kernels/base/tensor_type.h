#ifndef KERNELS_BASE_TENSOR_TYPE_H_
#define KERNELS_BASE_TENSOR_TYPE_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/container/inlined_vector.h"
#include "kernels/base/dtype.h"

namespace pipeloom {

// Extents of a dense row-major tensor, outermost first; {} is a scalar. An extent may be 0.
using Shape = absl::InlinedVector<int64_t, 4>;

// Product of the extents; 1 for a scalar.
int64_t NumElements(const Shape& shape);

// "[8, 512]", for messages.
std::string ShapeToString(const Shape& shape);

struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;

  int64_t num_elements() const { return NumElements(shape); }
  int64_t bytes() const { return num_elements() * Info(dtype).bytes; }
  int rank() const { return static_cast<int>(shape.size()); }
  std::string ToString() const;  // f32[8,512]

  friend bool operator==(const TensorType& a, const TensorType& b) { return a.dtype == b.dtype && a.shape == b.shape; }
  friend bool operator!=(const TensorType& a, const TensorType& b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& os, const TensorType& type) { return os << type.ToString(); }
};

}  // namespace pipeloom

#endif  // KERNELS_BASE_TENSOR_TYPE_H_
