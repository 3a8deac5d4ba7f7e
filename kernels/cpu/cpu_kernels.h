#ifndef KERNELS_CPU_CPU_KERNELS_H_
#define KERNELS_CPU_CPU_KERNELS_H_

#include "kernels/registry/kernel_registry.h"

namespace pipeloom {

inline constexpr char kCpuDevice[] = "cpu";

// Adds every kernel of the CPU: products and activations through oneDNN, the rest as loops. A kernel's bits depend on
// its spec, its operands and the machine's instruction set; never on addresses, and matmul's rows never on how many
// there are where oneDNN has its brgemm implementation (design, section 5).
void RegisterCpuKernels(KernelRegistry& registry);

// Fixes how many threads oneDNN computes with when kernels run on the **calling** thread: OpenMP keeps this number a
// thread, and a new thread starts with one a core. Each rank's thread calls it once before its first Run, with the
// `threads` of its kernels' specs, since a primitive is planned for that number.
void SetComputeThreads(int threads);

}  // namespace pipeloom

#endif  // KERNELS_CPU_CPU_KERNELS_H_
