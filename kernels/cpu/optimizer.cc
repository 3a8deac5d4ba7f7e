#include <cmath>
#include <cstdint>
#include <memory>

#include "kernels/base/status_macros.h"
#include "kernels/cpu/families.h"
#include "kernels/cpu/simd.h"

namespace pipeloom {
namespace {

struct SgdRule {
  explicit SgdRule(const AttributeMap& attributes)
      : lr(static_cast<float>(GetDouble(attributes, "lr", 0))),
        momentum(static_cast<float>(GetDouble(attributes, "momentum", 0))),
        weight_decay(static_cast<float>(GetDouble(attributes, "weight_decay", 0))),
        nesterov(GetBool(attributes, "nesterov", false)) {}

  float lr;
  float momentum;
  float weight_decay;
  bool nesterov;
};

// A weight decay of 0 adds an exact 0 to the gradient of every finite weight.
struct SgdBody {
  PIPELOOM_LOOP Run(const SgdRule& rule, float* w, const float* g, int64_t n) {
    const float lr = rule.lr;
    const float weight_decay = rule.weight_decay;
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) w[i] -= lr * (g[i] + weight_decay * w[i]);
  }
};

struct MomentumBody {
  PIPELOOM_LOOP Run(const SgdRule& rule, float* w, const float* g, float* accum, int64_t n) {
    if (rule.nesterov) {
      Steps<true>(rule, w, g, accum, n);
    } else {
      Steps<false>(rule, w, g, accum, n);
    }
  }

  template <bool kNesterov>
  PIPELOOM_LOOP Steps(const SgdRule& rule, float* w, const float* g, float* accum, int64_t n) {
    const float lr = rule.lr;
    const float momentum = rule.momentum;
    const float weight_decay = rule.weight_decay;
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const float gradient = g[i] + weight_decay * w[i];
      const float sum = momentum * accum[i] + gradient;
      accum[i] = sum;
      w[i] -= lr * (kNesterov ? gradient + momentum * sum : sum);
    }
  }
};

class SgdKernel : public Kernel {
 public:
  explicit SgdKernel(const KernelSpec& spec) : rule_(spec.attributes), count_(spec.inputs[0].num_elements()) {
    PIPELOOM_CHECK(spec.inputs.size() == (rule_.momentum == 0 ? 2 : 3), "sgd with momentum ", rule_.momentum, " and ",
                   spec.inputs.size(), " operands");
  }

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    float* const w = static_cast<float*>(operands[0]);
    const float* const g = static_cast<const float*>(operands[1]);
    if (rule_.momentum == 0) {
      plain_(rule_, w, g, count_);
    } else {
      momentum_(rule_, w, g, static_cast<float*>(operands[2]), count_);
    }
    return absl::OkStatus();
  }

 private:
  SgdRule rule_;
  int64_t count_;
  Loop<const SgdRule&, float*, const float*, int64_t> plain_ = BestVariant<SgdBody>(&SgdBody::Run);
  Loop<const SgdRule&, float*, const float*, float*, int64_t> momentum_ = BestVariant<MomentumBody>(&MomentumBody::Run);
};

// Factors of one step of Adam, rounded once from double.
struct AdamFactors {
  float weight_decay;  // of the gradient
  float kept;          // of the weight, before its step: 1 - lr * weight_decay where the decay is decoupled
  float beta1;
  float beta2;
  float rest1;           // 1 - beta1
  float rest2;           // 1 - beta2
  float step_size;       // lr / (1 - beta1^t)
  float second_moments;  // sqrt(1 - beta2^t)
  float eps;
};

template <bool kDecoupled>
struct AdamBody {
  PIPELOOM_LOOP Run(const AdamFactors& f, float* w, const float* g, float* m, float* v, int64_t n) {
    const AdamFactors c = f;
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const float gradient = kDecoupled ? g[i] : g[i] + c.weight_decay * w[i];
      const float first = c.beta1 * m[i] + c.rest1 * gradient;
      const float second = c.beta2 * v[i] + c.rest2 * gradient * gradient;
      m[i] = first;
      v[i] = second;
      const float weight = kDecoupled ? c.kept * w[i] : w[i];
      w[i] = weight - c.step_size * (first / (std::sqrt(second) / c.second_moments + c.eps));
    }
  }
};

// Kingma and Ba's Adam with the decay in the gradient (L2), or Loshchilov and Hutter's AdamW, which takes it from the
// weight alone (decoupled); both as PyTorch's.
template <bool kDecoupled>
class AdamKernel : public Kernel {
 public:
  explicit AdamKernel(const KernelSpec& spec)
      : lr_(GetDouble(spec.attributes, "lr", 0)),
        beta1_(GetDouble(spec.attributes, "beta1", 0.9)),
        beta2_(GetDouble(spec.attributes, "beta2", 0.999)),
        count_(spec.inputs[0].num_elements()) {
    PIPELOOM_CHECK(spec.inputs.size() == 5, spec.op, " with ", spec.inputs.size(), " operands");
    const double weight_decay = GetDouble(spec.attributes, "weight_decay", 0);
    factors_.weight_decay = static_cast<float>(weight_decay);
    factors_.kept = static_cast<float>(1 - lr_ * weight_decay);
    factors_.beta1 = static_cast<float>(beta1_);
    factors_.beta2 = static_cast<float>(beta2_);
    factors_.rest1 = static_cast<float>(1 - beta1_);
    factors_.rest2 = static_cast<float>(1 - beta2_);
    factors_.eps = static_cast<float>(GetDouble(spec.attributes, "eps", 1e-8));
  }

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    float* const t = static_cast<float*>(operands[4]);
    *t += 1;
    factors_.step_size = static_cast<float>(lr_ / (1 - std::pow(beta1_, *t)));
    factors_.second_moments = static_cast<float>(std::sqrt(1 - std::pow(beta2_, *t)));
    loop_(factors_, static_cast<float*>(operands[0]), static_cast<const float*>(operands[1]),
          static_cast<float*>(operands[2]), static_cast<float*>(operands[3]), count_);
    return absl::OkStatus();
  }

 private:
  double lr_;
  double beta1_;
  double beta2_;
  int64_t count_;
  AdamFactors factors_ = {};
  Loop<const AdamFactors&, float*, const float*, float*, float*, int64_t> loop_ =
      BestVariant<AdamBody<kDecoupled>>(&AdamBody<kDecoupled>::Run);
};

}  // namespace

void RegisterOptimizerKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "sgd", DType::kFloat32,
                    [](const KernelSpec& spec) { return std::make_unique<SgdKernel>(spec); });
  RegisterCpuKernel(registry, "adam", DType::kFloat32,
                    [](const KernelSpec& spec) { return std::make_unique<AdamKernel<false>>(spec); });
  RegisterCpuKernel(registry, "adamw", DType::kFloat32,
                    [](const KernelSpec& spec) { return std::make_unique<AdamKernel<true>>(spec); });
}

}  // namespace pipeloom
