#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/broadcast.h"
#include "kernels/cpu/families.h"
#include "kernels/cpu/map_kernel.h"
#include "kernels/cpu/simd.h"

namespace pipeloom {
namespace {

// Integers are added as unsigned ones: they wrap around, as tensors' elements do, and a signed one's bits come out.
struct AddOp {
  template <typename T>
  static inline __attribute__((always_inline)) T Apply(T a, T b) {
    return a + b;
  }
};
struct SubOp {
  template <typename T>
  static inline __attribute__((always_inline)) T Apply(T a, T b) {
    return a - b;
  }
};
struct MulOp {
  template <typename T>
  static inline __attribute__((always_inline)) T Apply(T a, T b) {
    return a * b;
  }
};
struct DivOp {
  template <typename T>
  static inline __attribute__((always_inline)) T Apply(T a, T b) {
    return a / b;
  }
};

// NaN, in either place, comes out.
struct MaximumOp {
  template <typename T>
  static inline __attribute__((always_inline)) T Apply(T a, T b) {
    return a >= b || a != a ? a : b;
  }
};
struct MinimumOp {
  template <typename T>
  static inline __attribute__((always_inline)) T Apply(T a, T b) {
    return a <= b || a != a ? a : b;
  }
};
struct PowOp {
  static inline __attribute__((always_inline)) float Apply(float a, float b) { return std::pow(a, b); }
};

// One run of `n` results. A step of 0 repeats an operand's one element, 1 walks along.
template <typename T, typename Op>
struct BinaryBody {
  PIPELOOM_LOOP Run(const T* a, int64_t a_step, const T* b, int64_t b_step, T* out, int64_t n) {
    if (a_step == 1 && b_step == 1) {
      PIPELOOM_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) out[i] = Op::Apply(a[i], b[i]);
    } else if (a_step == 1) {
      const T right = *b;
      PIPELOOM_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) out[i] = Op::Apply(a[i], right);
    } else if (b_step == 1) {
      const T left = *a;
      PIPELOOM_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) out[i] = Op::Apply(left, b[i]);
    } else {
      std::fill_n(out, n, Op::Apply(*a, *b));
    }
  }
};

// numpy's broadcasting. The result may stand where an operand of its own shape stands.
template <typename T, typename Op>
class BinaryKernel : public Kernel {
 public:
  explicit BinaryKernel(const KernelSpec& spec)
      : loop_(BestVariant<BinaryBody<T, Op>>(&BinaryBody<T, Op>::Run)),
        dims_(BroadcastDims<2>(spec)),
        count_(spec.outputs[0].num_elements()) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    if (count_ == 0) return absl::OkStatus();
    T* out = static_cast<T*>(operands[2]);
    RunDims(0, static_cast<const T*>(operands[0]), static_cast<const T*>(operands[1]), &out);
    return absl::OkStatus();
  }

 private:
  void RunDims(size_t depth, const T* a, const T* b, T** out) const {
    const BroadcastDim<2>& dim = dims_[depth];
    if (depth + 1 == dims_.size()) {
      loop_(a, dim.steps[0], b, dim.steps[1], *out, dim.extent);
      *out += dim.extent;
      return;
    }
    for (int64_t i = 0; i < dim.extent; ++i) RunDims(depth + 1, a + i * dim.steps[0], b + i * dim.steps[1], out);
  }

  Loop<const T*, int64_t, const T*, int64_t, T*, int64_t> loop_;
  std::vector<BroadcastDim<2>> dims_;
  int64_t count_;
};

template <typename T, typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBinary(const KernelSpec& spec) {
  return std::make_unique<BinaryKernel<T, Op>>(spec);
}

struct NegBody {
  PIPELOOM_LOOP Run(void* const* operands, int64_t n) {
    const float* x = static_cast<const float*>(operands[0]);
    float* out = static_cast<float*>(operands[1]);
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = -x[i];
  }
};

}  // namespace

void RegisterElementwiseKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "add", DType::kFloat32, &MakeBinary<float, AddOp>);
  RegisterCpuKernel(registry, "sub", DType::kFloat32, &MakeBinary<float, SubOp>);
  RegisterCpuKernel(registry, "mul", DType::kFloat32, &MakeBinary<float, MulOp>);
  RegisterCpuKernel(registry, "div", DType::kFloat32, &MakeBinary<float, DivOp>);
  RegisterCpuKernel(registry, "add", DType::kInt32, &MakeBinary<uint32_t, AddOp>);
  RegisterCpuKernel(registry, "sub", DType::kInt32, &MakeBinary<uint32_t, SubOp>);
  RegisterCpuKernel(registry, "mul", DType::kInt32, &MakeBinary<uint32_t, MulOp>);
  RegisterCpuKernel(registry, "add", DType::kInt64, &MakeBinary<uint64_t, AddOp>);
  RegisterCpuKernel(registry, "sub", DType::kInt64, &MakeBinary<uint64_t, SubOp>);
  RegisterCpuKernel(registry, "mul", DType::kInt64, &MakeBinary<uint64_t, MulOp>);
  RegisterCpuKernel(registry, "maximum", DType::kFloat32, &MakeBinary<float, MaximumOp>);
  RegisterCpuKernel(registry, "maximum", DType::kInt32, &MakeBinary<int32_t, MaximumOp>);
  RegisterCpuKernel(registry, "maximum", DType::kInt64, &MakeBinary<int64_t, MaximumOp>);
  RegisterCpuKernel(registry, "minimum", DType::kFloat32, &MakeBinary<float, MinimumOp>);
  RegisterCpuKernel(registry, "minimum", DType::kInt32, &MakeBinary<int32_t, MinimumOp>);
  RegisterCpuKernel(registry, "minimum", DType::kInt64, &MakeBinary<int64_t, MinimumOp>);
  RegisterCpuKernel(registry, "pow", DType::kFloat32, &MakeBinary<float, PowOp>);
  RegisterCpuKernel(registry, "neg", DType::kFloat32, &MakeMapKernel<NegBody>);
}

}  // namespace pipeloom
