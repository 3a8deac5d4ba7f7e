#ifndef TESTS_KERNELS_RUN_KERNEL_H_
#define TESTS_KERNELS_RUN_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/base/buffer.h"
#include "kernels/registry/kernel_registry.h"
#include "tests/kernels/reference.h"

namespace pipeloom {

// Operands in memory, each `offset` elements past a 64-byte boundary.
class OperandMemory {
 public:
  explicit OperandMemory(const std::vector<RefTensor>& operands, int64_t offset = 0);

  const std::vector<void*>& addresses() const { return addresses_; }
  std::vector<void*>& addresses() { return addresses_; }

  // Elements of operand i.
  std::vector<double> Values(size_t i) const;
  std::string Bits(size_t i) const;

 private:
  std::vector<TensorType> types_;
  std::vector<Buffer> buffers_;
  std::vector<void*> addresses_;
};

// Makes the kernel of `spec` and runs it once; every kernel runs with as many compute threads as its spec says.
absl::Status RunKernel(const KernelRegistry& registry, const KernelSpec& spec, OperandMemory& memory);

// The kernel of `spec`; ends the process where there is none.
std::unique_ptr<Kernel> MakeKernel(const KernelRegistry& registry, const KernelSpec& spec);

}  // namespace pipeloom

#endif  // TESTS_KERNELS_RUN_KERNEL_H_
