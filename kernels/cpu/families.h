#ifndef KERNELS_CPU_FAMILIES_H_
#define KERNELS_CPU_FAMILIES_H_

#include <string>
#include <utility>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/registry/kernel_registry.h"

namespace pipeloom {

inline void RegisterCpuKernel(KernelRegistry& registry, std::string op, DType dtype, KernelFactory factory) {
  registry.Register(KernelKey{std::move(op), kCpuDevice, dtype}, std::move(factory));
}

// One function a family, each in the file of its name; RegisterCpuKernels calls them all.
void RegisterMatmulKernels(KernelRegistry& registry);
void RegisterBatchMatmulKernels(KernelRegistry& registry);
void RegisterElementwiseKernels(KernelRegistry& registry);
void RegisterMathKernels(KernelRegistry& registry);
void RegisterActivationKernels(KernelRegistry& registry);
void RegisterCrossEntropyKernels(KernelRegistry& registry);
void RegisterMseKernels(KernelRegistry& registry);
void RegisterReductionKernels(KernelRegistry& registry);
void RegisterSoftmaxKernels(KernelRegistry& registry);
void RegisterLayerNormKernels(KernelRegistry& registry);
void RegisterLayoutKernels(KernelRegistry& registry);
void RegisterGatherKernels(KernelRegistry& registry);
void RegisterGatherAlongAxisKernels(KernelRegistry& registry);
void RegisterLogicalKernels(KernelRegistry& registry);
void RegisterDropoutKernels(KernelRegistry& registry);
void RegisterPrintKernels(KernelRegistry& registry);
void RegisterAccumulateKernels(KernelRegistry& registry);
void RegisterOptimizerKernels(KernelRegistry& registry);
void RegisterApplyUpdateKernels(KernelRegistry& registry);

}  // namespace pipeloom

#endif  // KERNELS_CPU_FAMILIES_H_
