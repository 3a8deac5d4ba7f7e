#include "tests/kernels/run_kernel.h"

#include "kernels/base/elements.h"
#include "kernels/base/status_macros.h"
#include "kernels/cpu/cpu_kernels.h"

namespace pipeloom {

OperandMemory::OperandMemory(const std::vector<RefTensor>& operands, int64_t offset) {
  for (const RefTensor& tensor : operands) {
    types_.push_back(tensor.type);
    // Never empty, so that operands without elements have addresses too.
    const int64_t element = Info(tensor.type.dtype).bytes;
    buffers_.emplace_back(static_cast<size_t>(tensor.type.bytes() + (offset + 1) * element));
    addresses_.push_back(buffers_.back().data() + offset * element);
    StoreElements(tensor.values, {addresses_.back(), tensor.type});
  }
}

std::vector<double> OperandMemory::Values(size_t i) const { return LoadElements({addresses_[i], types_[i]}); }

std::string OperandMemory::Bits(size_t i) const {
  return std::string(static_cast<const char*>(addresses_[i]), static_cast<size_t>(types_[i].bytes()));
}

std::unique_ptr<Kernel> MakeKernel(const KernelRegistry& registry, const KernelSpec& spec) {
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = registry.Create(kCpuDevice, spec);
  PIPELOOM_CHECK(kernel.ok(), kernel.status().ToString());
  return *std::move(kernel);
}

absl::Status RunKernel(const KernelRegistry& registry, const KernelSpec& spec, OperandMemory& memory) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, registry.Create(kCpuDevice, spec));
  const ScopedComputeThreads threads(spec.threads);
  Buffer scratch(kernel->scratch_bytes());
  return kernel->Run(memory.addresses(), scratch.data());
}

}  // namespace pipeloom
