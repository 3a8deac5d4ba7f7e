#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "kernels/cpu/families.h"

namespace pipeloom {
namespace {

absl::Status OutOfRange(absl::string_view op, int64_t id, int64_t position, int64_t extent) {
  return absl::OutOfRangeError(
      absl::StrCat(op, ": id ", id, " at position ", position, " is not in [0, ", extent, "), the extent of the axis"));
}

// Two tensors that differ in the extent of one axis: `ids` says how far along it an element of one lies in the other.
struct AlongAxis {
  AlongAxis(const Shape& whole, const Shape& picked, int64_t axis)
      : extent(whole[axis]), picks(picked[axis]), inner(1), outer(1) {
    for (int64_t i = 0; i < axis; ++i) outer *= whole[i];
    for (size_t i = static_cast<size_t>(axis) + 1; i < whole.size(); ++i) inner *= whole[i];
  }

  // visit(place in the whole, place of the id) for each id in order.
  template <typename Id, typename Visit>
  absl::Status ForEachId(absl::string_view op, const Id* ids, Visit visit) const {
    int64_t at = 0;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t p = 0; p < picks; ++p) {
        for (int64_t i = 0; i < inner; ++i, ++at) {
          const int64_t id = ids[at];
          if (id < 0 || id >= extent) return OutOfRange(op, id, at, extent);
          visit((o * extent + id) * inner + i, at);
        }
      }
    }
    return absl::OkStatus();
  }

  int64_t extent;  // of the axis in the whole
  int64_t picks;   // of the axis in the ids
  int64_t inner;
  int64_t outer;
};

// Moves bits, so that Word is an unsigned integer of the element's size.
template <typename Word, typename Id>
class GatherAlongAxisKernel : public Kernel {
 public:
  explicit GatherAlongAxisKernel(const KernelSpec& spec)
      : places_(spec.inputs[0].shape, spec.inputs[1].shape, GetInt(spec.attributes, "axis", 0)) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    const Word* const x = static_cast<const Word*>(operands[0]);
    Word* const out = static_cast<Word*>(operands[2]);
    return places_.ForEachId("gather_along_axis", static_cast<const Id*>(operands[1]),
                             [x, out](int64_t in_whole, int64_t at) { out[at] = x[in_whole]; });
  }

 private:
  AlongAxis places_;
};

// Zeros, to which the addends are added in the order of the ids.
template <typename Id>
class ScatterAddAlongAxisKernel : public Kernel {
 public:
  explicit ScatterAddAlongAxisKernel(const KernelSpec& spec)
      : places_(spec.outputs[0].shape, spec.inputs[1].shape, GetInt(spec.attributes, "axis", 0)),
        count_(spec.outputs[0].num_elements()) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    const float* const addends = static_cast<const float*>(operands[0]);
    float* const out = static_cast<float*>(operands[2]);
    std::fill_n(out, count_, 0.f);
    return places_.ForEachId("scatter_add_along_axis", static_cast<const Id*>(operands[1]),
                             [addends, out](int64_t in_whole, int64_t at) { out[in_whole] += addends[at]; });
  }

 private:
  AlongAxis places_;
  int64_t count_;
};

template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> MakeGatherAlongAxis(const KernelSpec& spec) {
  if (spec.inputs[1].dtype == DType::kInt64) return std::make_unique<GatherAlongAxisKernel<Word, int64_t>>(spec);
  PIPELOOM_CHECK(spec.inputs[1].dtype == DType::kInt32, spec.op, " with ids ", spec.inputs[1].ToString());
  return std::make_unique<GatherAlongAxisKernel<Word, int32_t>>(spec);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeScatterAddAlongAxis(const KernelSpec& spec) {
  if (spec.inputs[1].dtype == DType::kInt64) return std::make_unique<ScatterAddAlongAxisKernel<int64_t>>(spec);
  PIPELOOM_CHECK(spec.inputs[1].dtype == DType::kInt32, spec.op, " with ids ", spec.inputs[1].ToString());
  return std::make_unique<ScatterAddAlongAxisKernel<int32_t>>(spec);
}

}  // namespace

void RegisterGatherAlongAxisKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "gather_along_axis", DType::kFloat32, &MakeGatherAlongAxis<uint32_t>);
  RegisterCpuKernel(registry, "gather_along_axis", DType::kInt32, &MakeGatherAlongAxis<uint32_t>);
  RegisterCpuKernel(registry, "gather_along_axis", DType::kInt64, &MakeGatherAlongAxis<uint64_t>);
  RegisterCpuKernel(registry, "gather_along_axis", DType::kBool, &MakeGatherAlongAxis<uint8_t>);
  RegisterCpuKernel(registry, "scatter_add_along_axis", DType::kFloat32, &MakeScatterAddAlongAxis);
}

}  // namespace pipeloom
