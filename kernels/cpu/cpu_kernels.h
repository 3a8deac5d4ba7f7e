#ifndef KERNELS_CPU_CPU_KERNELS_H_
#define KERNELS_CPU_CPU_KERNELS_H_

#include <string>

#include "kernels/registry/kernel_registry.h"

namespace pipeloom {

inline constexpr char kCpuDevice[] = "cpu";

// Adds every kernel of the CPU: products and activations through oneDNN, the rest as loops. A kernel's bits depend on
// its spec, its operands and the machine's instruction set; never on addresses, and matmul's rows never on how many
// there are where oneDNN has its brgemm implementation (design, section 5).
void RegisterCpuKernels(KernelRegistry& registry);

// The instruction set that kernels use on this machine, such as "avx512_core_amx": the same set, the same bits.
std::string CpuInstructions();

// How many threads oneDNN computes with on the **calling** thread, as long as this lives; then the number from before
// holds again. OpenMP keeps the number a thread, and a new thread starts with one a core. A rank runs kernels under the
// `threads` of their specs, since a primitive is planned for that number.
class ScopedComputeThreads {
 public:
  explicit ScopedComputeThreads(int threads);
  ~ScopedComputeThreads();
  ScopedComputeThreads(const ScopedComputeThreads&) = delete;
  ScopedComputeThreads& operator=(const ScopedComputeThreads&) = delete;

 private:
  const int before_;
};

}  // namespace pipeloom

#endif  // KERNELS_CPU_CPU_KERNELS_H_
