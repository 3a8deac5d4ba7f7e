#include "kernels/cpu/cpu_kernels.h"

#include <omp.h>

#include "kernels/base/status_macros.h"
#include "kernels/cpu/families.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "oneapi/dnnl/dnnl_debug.h"

namespace pipeloom {

void RegisterCpuKernels(KernelRegistry& registry) {
  RegisterMatmulKernels(registry);
  RegisterBatchMatmulKernels(registry);
  RegisterElementwiseKernels(registry);
  RegisterMathKernels(registry);
  RegisterActivationKernels(registry);
  RegisterCrossEntropyKernels(registry);
  RegisterMseKernels(registry);
  RegisterReductionKernels(registry);
  RegisterSoftmaxKernels(registry);
  RegisterLayerNormKernels(registry);
  RegisterLayoutKernels(registry);
  RegisterGatherKernels(registry);
  RegisterGatherAlongAxisKernels(registry);
  RegisterLogicalKernels(registry);
  RegisterDropoutKernels(registry);
  RegisterPrintKernels(registry);
  RegisterAccumulateKernels(registry);
  RegisterOptimizerKernels(registry);
  RegisterApplyUpdateKernels(registry);
}

std::string CpuInstructions() { return dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa()); }

ScopedComputeThreads::ScopedComputeThreads(int threads) : before_(omp_get_max_threads()) {
  PIPELOOM_CHECK(threads > 0, threads, " compute threads");
  omp_set_num_threads(threads);
}

ScopedComputeThreads::~ScopedComputeThreads() { omp_set_num_threads(before_); }

}  // namespace pipeloom
