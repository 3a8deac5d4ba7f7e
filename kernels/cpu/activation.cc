#include <memory>
#include <string>
#include <utility>

#include "kernels/base/status_macros.h"
#include "kernels/cpu/eltwise.h"
#include "kernels/cpu/families.h"
#include "kernels/cpu/map_kernel.h"
#include "kernels/cpu/relu.h"

namespace pipeloom {
namespace {

struct ReluMap {
  PIPELOOM_LOOP Run(void* const* operands, int64_t n) {
    ReluBody::Run(static_cast<const float*>(operands[0]), static_cast<float*>(operands[1]), n);
  }
};

// dx = Formula(dy, y) over the result y of the forward op; dx may be dy.
template <typename Formula>
struct GradOfResult {
  PIPELOOM_LOOP Run(void* const* operands, int64_t n) {
    const float* dy = static_cast<const float*>(operands[0]);
    const float* y = static_cast<const float*>(operands[1]);
    float* dx = static_cast<float*>(operands[2]);
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) dx[i] = Formula::Apply(dy[i], y[i]);
  }
};

struct ReluGrad {
  static inline __attribute__((always_inline)) float Apply(float dy, float y) { return y <= 0.f ? 0.f : dy; }
};
struct TanhGrad {
  static inline __attribute__((always_inline)) float Apply(float dy, float y) { return dy * (1.f - y * y); }
};
struct SigmoidGrad {
  static inline __attribute__((always_inline)) float Apply(float dy, float y) { return dy * (y * (1.f - y)); }
};

class EltwiseKernel : public Kernel {
 public:
  explicit EltwiseKernel(OneDnnCall call) : call_(std::move(call)) {}
  absl::Status Run(absl::Span<void* const> operands, void* scratch) override { return call_.Run(operands, scratch); }
  size_t scratch_bytes() const override { return call_.scratch_bytes(); }
  std::string implementation() const override { return call_.implementation(); }

 private:
  OneDnnCall call_;
};

// oneDNN has no empty tensors worth calling it for.
class EmptyKernel : public Kernel {
 public:
  absl::Status Run(absl::Span<void* const>, void*) override { return absl::OkStatus(); }
};

const EltwiseActivation& ActivationOf(const KernelSpec& spec) {
  std::string name = spec.op.substr(0, spec.op.find("_grad"));
  if (name == "gelu") name = GetBool(spec.attributes, "approximate", true) ? "gelu_tanh" : "gelu_erf";
  const EltwiseActivation* const activation = FindEltwiseActivation(name);
  PIPELOOM_CHECK(activation != nullptr, "no activation ", name);
  return *activation;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeForward(const KernelSpec& spec) {
  const int64_t count = spec.inputs[0].num_elements();
  if (count == 0) return std::make_unique<EmptyKernel>();
  ASSIGN_OR_RETURN(OneDnnCall call, MakeEltwiseForward(ActivationOf(spec), count, spec.threads, 0, 1));
  return std::make_unique<EltwiseKernel>(std::move(call));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGeluGrad(const KernelSpec& spec) {
  const int64_t count = spec.inputs[0].num_elements();
  if (count == 0) return std::make_unique<EmptyKernel>();
  ASSIGN_OR_RETURN(OneDnnCall call, MakeEltwiseBackward(ActivationOf(spec), count, spec.threads, 0, 1, 2));
  return std::make_unique<EltwiseKernel>(std::move(call));
}

}  // namespace

void RegisterActivationKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "relu", DType::kFloat32, &MakeMapKernel<ReluMap>);
  RegisterCpuKernel(registry, "relu_grad", DType::kFloat32, &MakeMapKernel<GradOfResult<ReluGrad>>);
  RegisterCpuKernel(registry, "tanh", DType::kFloat32, &MakeForward);
  RegisterCpuKernel(registry, "tanh_grad", DType::kFloat32, &MakeMapKernel<GradOfResult<TanhGrad>>);
  RegisterCpuKernel(registry, "sigmoid", DType::kFloat32, &MakeForward);
  RegisterCpuKernel(registry, "sigmoid_grad", DType::kFloat32, &MakeMapKernel<GradOfResult<SigmoidGrad>>);
  RegisterCpuKernel(registry, "gelu", DType::kFloat32, &MakeForward);
  RegisterCpuKernel(registry, "gelu_grad", DType::kFloat32, &MakeGeluGrad);
}

}  // namespace pipeloom
