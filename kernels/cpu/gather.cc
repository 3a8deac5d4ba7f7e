#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "kernels/cpu/families.h"
#include "kernels/cpu/simd.h"

namespace pipeloom {
namespace {

absl::Status OutOfRange(absl::string_view op, int64_t id, int64_t position, int64_t rows) {
  return absl::OutOfRangeError(absl::StrCat(op, ": id ", id, " at position ", position, " is not in [0, ", rows,
                                            "), the rows of the table; correct the id or make the table larger"));
}

// The row of the table for each id.
template <typename Id>
class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(const KernelSpec& spec)
      : rows_(spec.inputs[0].shape[0]),
        ids_(spec.inputs[1].num_elements()),
        row_bytes_(ids_ == 0 ? 0 : static_cast<size_t>(spec.outputs[0].bytes() / ids_)) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    const char* const table = static_cast<const char*>(operands[0]);
    const Id* const ids = static_cast<const Id*>(operands[1]);
    char* out = static_cast<char*>(operands[2]);
    for (int64_t i = 0; i < ids_; ++i, out += row_bytes_) {
      const int64_t id = ids[i];
      if (id < 0 || id >= rows_) return OutOfRange("gather", id, i, rows_);
      std::memcpy(out, table + static_cast<size_t>(id) * row_bytes_, row_bytes_);
    }
    return absl::OkStatus();
  }

 private:
  int64_t rows_;
  int64_t ids_;
  size_t row_bytes_;
};

struct AddRowBody {
  PIPELOOM_LOOP Run(const float* x, float* out, int64_t n) {
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] += x[i];
  }
};

// The gradient of the table: zeros, and to each id's row the gradients of that row are added in the order of the ids.
template <typename Id>
class GatherGradKernel : public Kernel {
 public:
  explicit GatherGradKernel(const KernelSpec& spec)
      : rows_(spec.outputs[0].shape[0]),
        ids_(spec.inputs[1].num_elements()),
        row_(ids_ == 0 ? 0 : spec.inputs[0].num_elements() / ids_),
        table_(spec.outputs[0].num_elements()) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    const float* gradient = static_cast<const float*>(operands[0]);
    const Id* const ids = static_cast<const Id*>(operands[1]);
    float* const table = static_cast<float*>(operands[2]);
    std::fill_n(table, table_, 0.f);
    for (int64_t i = 0; i < ids_; ++i, gradient += row_) {
      const int64_t id = ids[i];
      if (id < 0 || id >= rows_) return OutOfRange("gather_grad", id, i, rows_);
      add_(gradient, table + id * row_, row_);
    }
    return absl::OkStatus();
  }

 private:
  int64_t rows_;
  int64_t ids_;
  int64_t row_;
  int64_t table_;
  Loop<const float*, float*, int64_t> add_ = BestVariant<AddRowBody>(&AddRowBody::Run);
};

template <template <typename> class KernelOf>
absl::StatusOr<std::unique_ptr<Kernel>> MakeForIds(const KernelSpec& spec) {
  if (spec.inputs[1].dtype == DType::kInt64) return std::make_unique<KernelOf<int64_t>>(spec);
  PIPELOOM_CHECK(spec.inputs[1].dtype == DType::kInt32, spec.op, " with ids ", spec.inputs[1].ToString());
  return std::make_unique<KernelOf<int32_t>>(spec);
}

}  // namespace

void RegisterGatherKernels(KernelRegistry& registry) {
  for (const DTypeInfo& info : kDTypes) RegisterCpuKernel(registry, "gather", info.dtype, &MakeForIds<GatherKernel>);
  RegisterCpuKernel(registry, "gather_grad", DType::kFloat32, &MakeForIds<GatherGradKernel>);
}

}  // namespace pipeloom
