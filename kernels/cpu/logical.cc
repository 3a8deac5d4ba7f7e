#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <type_traits>

#include "kernels/base/status_macros.h"
#include "kernels/cpu/broadcast.h"
#include "kernels/cpu/families.h"

namespace pipeloom {
namespace {

// The elements of a bool tensor: 0 or 1, read as "not 0".
using Bool = uint8_t;

template <template <typename> class Compare, typename T>
struct CompareFunction {
  Bool operator()(T a, T b) const { return Compare<T>()(a, b) ? 1 : 0; }
};

// The result is bool whatever is compared, so the kernel is chosen by its inputs.
template <template <typename> class Compare>
absl::StatusOr<std::unique_ptr<Kernel>> MakeCompare(const KernelSpec& spec) {
  switch (spec.inputs[0].dtype) {
    case DType::kFloat32:
      return MakeBroadcastKernel<CompareFunction<Compare, float>, Bool, float, float>(spec);
    case DType::kInt32:
      return MakeBroadcastKernel<CompareFunction<Compare, int32_t>, Bool, int32_t, int32_t>(spec);
    case DType::kInt64:
      return MakeBroadcastKernel<CompareFunction<Compare, int64_t>, Bool, int64_t, int64_t>(spec);
    case DType::kBool:
      return MakeBroadcastKernel<CompareFunction<Compare, bool>, Bool, bool, bool>(spec);
  }
  return absl::InternalError("no such dtype");
}

struct AndFunction {
  Bool operator()(Bool a, Bool b) const { return a != 0 && b != 0 ? 1 : 0; }
};
struct OrFunction {
  Bool operator()(Bool a, Bool b) const { return a != 0 || b != 0 ? 1 : 0; }
};
struct NotFunction {
  Bool operator()(Bool x) const { return x == 0 ? 1 : 0; }
};

// Moves bits, so that T is an unsigned integer of the element's size.
template <typename T>
struct WhereFunction {
  T operator()(Bool condition, T a, T b) const { return condition != 0 ? a : b; }
};

// As C++ converts; from f32 toward zero, what lies beyond the integers to the nearest one, NaN to 0.
template <typename To, typename From>
struct CastFunction {
  To operator()(From x) const {
    if constexpr (std::is_same_v<To, bool>) {
      return x != 0;
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      // The least is a power of 2 and so exact; the most is one less than one.
      constexpr From kLeast = static_cast<From>(std::numeric_limits<To>::min());
      if (std::isnan(x)) return 0;
      if (x >= -kLeast) return std::numeric_limits<To>::max();
      return x <= kLeast ? std::numeric_limits<To>::min() : static_cast<To>(x);
    } else {
      return static_cast<To>(x);
    }
  }
};

template <typename To>
absl::StatusOr<std::unique_ptr<Kernel>> MakeCast(const KernelSpec& spec) {
  switch (spec.inputs[0].dtype) {
    case DType::kFloat32:
      return MakeBroadcastKernel<CastFunction<To, float>, To, float>(spec);
    case DType::kInt32:
      return MakeBroadcastKernel<CastFunction<To, int32_t>, To, int32_t>(spec);
    case DType::kInt64:
      return MakeBroadcastKernel<CastFunction<To, int64_t>, To, int64_t>(spec);
    case DType::kBool:
      return MakeBroadcastKernel<CastFunction<To, bool>, To, bool>(spec);
  }
  return absl::InternalError("no such dtype");
}

}  // namespace

void RegisterLogicalKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "equal", DType::kBool, &MakeCompare<std::equal_to>);
  RegisterCpuKernel(registry, "not_equal", DType::kBool, &MakeCompare<std::not_equal_to>);
  RegisterCpuKernel(registry, "less", DType::kBool, &MakeCompare<std::less>);
  RegisterCpuKernel(registry, "less_equal", DType::kBool, &MakeCompare<std::less_equal>);
  RegisterCpuKernel(registry, "greater", DType::kBool, &MakeCompare<std::greater>);
  RegisterCpuKernel(registry, "greater_equal", DType::kBool, &MakeCompare<std::greater_equal>);
  RegisterCpuKernel(registry, "logical_and", DType::kBool, &MakeBroadcastKernel<AndFunction, Bool, Bool, Bool>);
  RegisterCpuKernel(registry, "logical_or", DType::kBool, &MakeBroadcastKernel<OrFunction, Bool, Bool, Bool>);
  RegisterCpuKernel(registry, "logical_not", DType::kBool, &MakeBroadcastKernel<NotFunction, Bool, Bool>);
  RegisterCpuKernel(registry, "where", DType::kFloat32,
                    &MakeBroadcastKernel<WhereFunction<uint32_t>, uint32_t, Bool, uint32_t, uint32_t>);
  RegisterCpuKernel(registry, "where", DType::kInt32,
                    &MakeBroadcastKernel<WhereFunction<uint32_t>, uint32_t, Bool, uint32_t, uint32_t>);
  RegisterCpuKernel(registry, "where", DType::kInt64,
                    &MakeBroadcastKernel<WhereFunction<uint64_t>, uint64_t, Bool, uint64_t, uint64_t>);
  RegisterCpuKernel(registry, "where", DType::kBool, &MakeBroadcastKernel<WhereFunction<Bool>, Bool, Bool, Bool, Bool>);
  RegisterCpuKernel(registry, "cast", DType::kFloat32, &MakeCast<float>);
  RegisterCpuKernel(registry, "cast", DType::kInt32, &MakeCast<int32_t>);
  RegisterCpuKernel(registry, "cast", DType::kInt64, &MakeCast<int64_t>);
  RegisterCpuKernel(registry, "cast", DType::kBool, &MakeCast<bool>);
}

}  // namespace pipeloom
