#include "kernels/base/elements.h"

#include <cstdint>

#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

template <typename T>
void Store(absl::Span<const double> elements, void* to, int64_t count) {
  T* const data = static_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) {
    data[i] = static_cast<T>(elements[elements.size() == 1 ? 0 : static_cast<size_t>(i)]);
  }
}

template <typename T>
std::vector<double> Load(const void* from, int64_t count) {
  const T* const data = static_cast<const T*>(from);
  return std::vector<double>(data, data + count);
}

}  // namespace

void StoreElements(absl::Span<const double> elements, const TensorView& to) {
  const int64_t count = to.type.num_elements();
  PIPELOOM_CHECK(elements.size() == 1 || static_cast<int64_t>(elements.size()) == count, elements.size(),
                 " elements for ", to.type.ToString());
  switch (to.type.dtype) {
    case DType::kFloat32:
      return Store<float>(elements, to.data, count);
    case DType::kInt32:
      return Store<int32_t>(elements, to.data, count);
    case DType::kInt64:
      return Store<int64_t>(elements, to.data, count);
    case DType::kBool:
      return Store<bool>(elements, to.data, count);
  }
}

std::vector<double> LoadElements(const TensorView& from) {
  const int64_t count = from.type.num_elements();
  switch (from.type.dtype) {
    case DType::kFloat32:
      return Load<float>(from.data, count);
    case DType::kInt32:
      return Load<int32_t>(from.data, count);
    case DType::kInt64:
      return Load<int64_t>(from.data, count);
    case DType::kBool:
      return Load<bool>(from.data, count);
  }
  return {};
}

}  // namespace pipeloom
