#ifndef KERNELS_BASE_DTYPE_H_
#define KERNELS_BASE_DTYPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipeloom {

// Element types of tensors. kDTypes below is the one table of their names and sizes.
enum class DType : uint8_t { kFloat32, kInt32, kInt64, kBool };

struct DTypeInfo {
  DType dtype;
  absl::string_view name;              // in the text form: f32
  absl::string_view safetensors_name;  // in a safetensors header: F32
  int bytes;
  bool floating;
};

inline constexpr DTypeInfo kDTypes[] = {
    {DType::kFloat32, "f32", "F32", 4, true},
    {DType::kInt32, "i32", "I32", 4, false},
    {DType::kInt64, "i64", "I64", 8, false},
    {DType::kBool, "bool", "BOOL", 1, false},  // 0 or 1
};

constexpr const DTypeInfo& Info(DType dtype) { return kDTypes[static_cast<int>(dtype)]; }

// The dtype named as in the text form; InvalidArgument with the choices otherwise.
absl::StatusOr<DType> ParseDType(absl::string_view name);

}  // namespace pipeloom

#endif  // KERNELS_BASE_DTYPE_H_
