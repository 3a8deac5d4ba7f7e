#include "kernels/cpu/families.h"
#include "kernels/cpu/map_kernel.h"

namespace pipeloom {
namespace {

// acc = acc + x, the one place where micro-batches' gradients are added.
struct AccumulateBody {
  PIPELOOM_LOOP Run(void* const* operands, int64_t n) {
    const float* x = static_cast<const float*>(operands[0]);
    float* acc = static_cast<float*>(operands[1]);
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) acc[i] += x[i];
  }
};

}  // namespace

void RegisterAccumulateKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "grad_accumulate", DType::kFloat32, &MakeMapKernel<AccumulateBody>);
}

}  // namespace pipeloom
