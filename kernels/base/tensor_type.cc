#include "kernels/base/tensor_type.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipeloom {

int64_t NumElements(const Shape& shape) {
  int64_t elements = 1;
  for (int64_t extent : shape) elements *= extent;
  return elements;
}

std::string ShapeToString(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

std::string TensorType::ToString() const { return absl::StrCat(Info(dtype).name, "[", absl::StrJoin(shape, ","), "]"); }

}  // namespace pipeloom
