#include <cstdint>
#include <memory>

#include "kernels/cpu/families.h"
#include "kernels/cpu/simd.h"

namespace pipeloom {
namespace {

// Sum of (x - target)^2, in lanes.
struct SquaredErrorBody {
  PIPELOOM_LOOP Run(const float* x, const float* target, float* sum, int64_t n) {
    *sum = SumInLanes(
        n,
        [=](Lanes & sums, int64_t i) __attribute__((always_inline)) {
          const Lanes d =
              *reinterpret_cast<const UnalignedLanes*>(x + i) - *reinterpret_cast<const UnalignedLanes*>(target + i);
          sums += d * d;
        },
        [=](int64_t i) __attribute__((always_inline)) { return (x[i] - target[i]) * (x[i] - target[i]); });
  }
};

struct ErrorGradBody {
  PIPELOOM_LOOP Run(float scale, const float* x, const float* target, float* dx, int64_t n) {
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) dx[i] = scale * (x[i] - target[i]);
  }
};

bool IsMean(const KernelSpec& spec) { return GetString(spec.attributes, "reduction", "mean") == "mean"; }

class MseKernel : public Kernel {
 public:
  explicit MseKernel(const KernelSpec& spec) : count_(spec.inputs[0].num_elements()), mean_(IsMean(spec)) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    float* const out = static_cast<float*>(operands[2]);
    loop_(static_cast<const float*>(operands[0]), static_cast<const float*>(operands[1]), out, count_);
    if (mean_) *out /= static_cast<float>(count_);
    return absl::OkStatus();
  }

 private:
  Loop<const float*, const float*, float*, int64_t> loop_ = BestVariant<SquaredErrorBody>(&SquaredErrorBody::Run);
  int64_t count_;
  bool mean_;
};

class MseGradKernel : public Kernel {
 public:
  explicit MseGradKernel(const KernelSpec& spec) : count_(spec.inputs[1].num_elements()), mean_(IsMean(spec)) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    const float dloss = *static_cast<const float*>(operands[0]);
    const float scale = mean_ ? 2.f * dloss / static_cast<float>(count_) : 2.f * dloss;
    loop_(scale, static_cast<const float*>(operands[1]), static_cast<const float*>(operands[2]),
          static_cast<float*>(operands[3]), count_);
    return absl::OkStatus();
  }

 private:
  Loop<float, const float*, const float*, float*, int64_t> loop_ = BestVariant<ErrorGradBody>(&ErrorGradBody::Run);
  int64_t count_;
  bool mean_;
};

}  // namespace

void RegisterMseKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "mse", DType::kFloat32,
                    [](const KernelSpec& spec) { return std::make_unique<MseKernel>(spec); });
  RegisterCpuKernel(registry, "mse_grad", DType::kFloat32,
                    [](const KernelSpec& spec) { return std::make_unique<MseGradKernel>(spec); });
}

}  // namespace pipeloom
