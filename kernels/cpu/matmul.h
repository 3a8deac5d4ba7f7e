#ifndef KERNELS_CPU_MATMUL_H_
#define KERNELS_CPU_MATMUL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/registry/kernel.h"

namespace pipeloom {

// The kernel of one product of two matrices, with its epilogue.
absl::StatusOr<std::unique_ptr<Kernel>> MakeMatmulKernel(const KernelSpec& spec);

}  // namespace pipeloom

#endif  // KERNELS_CPU_MATMUL_H_
