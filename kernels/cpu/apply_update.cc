#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

#include "kernels/cpu/families.h"
#include "kernels/cpu/map_kernel.h"
#include "kernels/cpu/simd.h"

namespace pipeloom {
namespace {

// Updates whose factors are operands. Each rounds where MindSpore 2.10's CPU kernel of that optimizer rounds, fused
// multiply-adds and double included, so that both hosts' weights are the same bits (//tests/kernels:apply_update_test).

// Operands (w, g, accum, fresh, lr, momentum). Where an element of `fresh` is above 0, its accum begins with the
// gradient, undampened, and fresh becomes 0.
struct ApplySgdRule {
  float dampening;
  float weight_decay;
};

template <bool kNesterov>
struct ApplySgdBody {
  PIPELOOM_LOOP Run(const ApplySgdRule& rule, void* const* operands, int64_t n) {
    float* w = static_cast<float*>(operands[0]);
    const float* g = static_cast<const float*>(operands[1]);
    float* accum = static_cast<float*>(operands[2]);
    float* fresh = static_cast<float*>(operands[3]);
    const float lr = *static_cast<const float*>(operands[4]);
    const float momentum = *static_cast<const float*>(operands[5]);
    const float kept = 1.f - rule.dampening;
    const float weight_decay = rule.weight_decay;
    if (!(momentum > 0)) {
      PIPELOOM_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) w[i] -= lr * (g[i] + w[i] * weight_decay);
      return;
    }
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const float gradient = g[i] + w[i] * weight_decay;
      const float sum = fresh[i] > 0 ? gradient : accum[i] * momentum + kept * gradient;
      accum[i] = sum;
      fresh[i] = 0;
      w[i] -= lr * (kNesterov ? gradient + sum * momentum : sum);
    }
  }
};

class ApplySgdKernel : public Kernel {
 public:
  explicit ApplySgdKernel(const KernelSpec& spec)
      : rule_{static_cast<float>(GetDouble(spec.attributes, "dampening", 0)),
              static_cast<float>(GetDouble(spec.attributes, "weight_decay", 0))},
        count_(spec.inputs[0].num_elements()),
        loop_(GetBool(spec.attributes, "nesterov", false)
                  ? BestVariant<ApplySgdBody<true>>(&ApplySgdBody<true>::Run)
                  : BestVariant<ApplySgdBody<false>>(&ApplySgdBody<false>::Run)) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    loop_(rule_, operands.data(), count_);
    return absl::OkStatus();
  }

 private:
  ApplySgdRule rule_;
  int64_t count_;
  Loop<const ApplySgdRule&, void* const*, int64_t> loop_;
};

// Operands (w, g, accum, lr, momentum).
struct ApplyMomentumBody {
  PIPELOOM_LOOP Run(void* const* operands, int64_t n) {
    float* w = static_cast<float*>(operands[0]);
    const float* g = static_cast<const float*>(operands[1]);
    float* accum = static_cast<float*>(operands[2]);
    const float lr = *static_cast<const float*>(operands[3]);
    const float momentum = *static_cast<const float*>(operands[4]);
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const float sum = accum[i] * momentum + g[i];
      accum[i] = sum;
      w[i] -= sum * lr;
    }
  }
};

// The two moments of Adam after a gradient.
struct Moments {
  static inline __attribute__((always_inline)) float First(float m, float g, float rest) {
    return __builtin_fmaf(g - m, rest, m);
  }
  static inline __attribute__((always_inline)) float Second(float v, float g, float rest) {
    return __builtin_fmaf(__builtin_fmaf(g, g, -v), rest, v);
  }
};

// Operands (w, g, m, v, beta1 to the power of the step, beta2 so, lr, beta1, beta2, eps).
template <bool kNesterov>
struct ApplyAdamBody {
  PIPELOOM_LOOP Run(void* const* operands, int64_t n) {
    float* w = static_cast<float*>(operands[0]);
    const float* g = static_cast<const float*>(operands[1]);
    float* m = static_cast<float*>(operands[2]);
    float* v = static_cast<float*>(operands[3]);
    const float beta1 = *static_cast<const float*>(operands[7]);
    const float rest1 = 1.f - beta1;
    const float rest2 = 1.f - *static_cast<const float*>(operands[8]);
    const float eps = *static_cast<const float*>(operands[9]);
    const float second_moments = std::sqrt(1.f - *static_cast<const float*>(operands[5]));
    const float lr = *static_cast<const float*>(operands[6]) * second_moments;
    const float step_size = lr / (1.f - *static_cast<const float*>(operands[4]));
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const float first = Moments::First(m[i], g[i], rest1);
      const float second = Moments::Second(v[i], g[i], rest2);
      m[i] = first;
      v[i] = second;
      const float ahead = kNesterov ? __builtin_fmaf(rest1, g[i], first * beta1) : first;
      w[i] -= step_size * ahead / (std::sqrt(second) + eps);
    }
  }
};

// Operands (w, g, m, v, lr, beta1, beta2, eps, weight decay). The decay is decoupled, and nothing corrects the moments'
// bias.
struct ApplyAdamWBody {
  PIPELOOM_LOOP Run(void* const* operands, int64_t n) {
    float* w = static_cast<float*>(operands[0]);
    const float* g = static_cast<const float*>(operands[1]);
    float* m = static_cast<float*>(operands[2]);
    float* v = static_cast<float*>(operands[3]);
    const double lr = *static_cast<const float*>(operands[4]);
    const float rest1 = 1.f - *static_cast<const float*>(operands[5]);
    const float rest2 = 1.f - *static_cast<const float*>(operands[6]);
    const double eps = *static_cast<const float*>(operands[7]);
    const float weight_decay = *static_cast<const float*>(operands[8]);
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const float first = Moments::First(m[i], g[i], rest1);
      const float second = Moments::Second(v[i], g[i], rest2);
      m[i] = first;
      v[i] = second;
      const double step = first / (std::sqrt(static_cast<double>(second)) + eps) + weight_decay * w[i];
      w[i] = static_cast<float>(w[i] - lr * step);
    }
  }
};

// Integers wrap around, as unsigned ones do.
template <typename T>
struct AssignAddBody {
  PIPELOOM_LOOP Run(void* const* operands, int64_t n) {
    T* parameter = static_cast<T*>(operands[0]);
    const T* value = static_cast<const T*>(operands[1]);
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) parameter[i] += value[i];
  }
};

class AssignKernel : public Kernel {
 public:
  explicit AssignKernel(const KernelSpec& spec) : bytes_(static_cast<size_t>(spec.inputs[0].bytes())) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    if (bytes_ > 0) std::memmove(operands[0], operands[1], bytes_);  // the value may be the parameter
    return absl::OkStatus();
  }

 private:
  size_t bytes_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeApplyAdam(const KernelSpec& spec) {
  return GetBool(spec.attributes, "nesterov", false) ? MakeMapKernel<ApplyAdamBody<true>>(spec)
                                                     : MakeMapKernel<ApplyAdamBody<false>>(spec);
}

}  // namespace

void RegisterApplyUpdateKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "apply_sgd", DType::kFloat32,
                    [](const KernelSpec& spec) { return std::make_unique<ApplySgdKernel>(spec); });
  RegisterCpuKernel(registry, "apply_momentum", DType::kFloat32, &MakeMapKernel<ApplyMomentumBody>);
  RegisterCpuKernel(registry, "apply_adam", DType::kFloat32, &MakeApplyAdam);
  RegisterCpuKernel(registry, "apply_adamw", DType::kFloat32, &MakeMapKernel<ApplyAdamWBody>);
  for (const DTypeInfo& info : kDTypes) {
    RegisterCpuKernel(registry, "assign", info.dtype,
                      [](const KernelSpec& spec) { return std::make_unique<AssignKernel>(spec); });
  }
  RegisterCpuKernel(registry, "assign_add", DType::kFloat32, &MakeMapKernel<AssignAddBody<float>>);
  RegisterCpuKernel(registry, "assign_add", DType::kInt32, &MakeMapKernel<AssignAddBody<uint32_t>>);
  RegisterCpuKernel(registry, "assign_add", DType::kInt64, &MakeMapKernel<AssignAddBody<uint64_t>>);
}

}  // namespace pipeloom
