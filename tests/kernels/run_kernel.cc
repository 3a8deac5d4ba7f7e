#include "tests/kernels/run_kernel.h"

#include "kernels/base/status_macros.h"
#include "kernels/cpu/cpu_kernels.h"

namespace pipeloom {

OperandMemory::OperandMemory(const std::vector<RefTensor>& operands, int64_t offset) {
  for (const RefTensor& tensor : operands) {
    types_.push_back(tensor.type);
    // Never empty, so that operands without elements have addresses too.
    buffers_.emplace_back(static_cast<size_t>(tensor.type.bytes() + (offset + 1) * 4));
    void* const address = buffers_.back().data() + offset * 4;
    addresses_.push_back(address);
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      if (tensor.type.dtype == DType::kFloat32) {
        static_cast<float*>(address)[i] = static_cast<float>(tensor.values[i]);
      } else {
        static_cast<int32_t*>(address)[i] = static_cast<int32_t>(tensor.values[i]);
      }
    }
  }
}

std::vector<double> OperandMemory::Values(size_t i) const {
  const size_t count = static_cast<size_t>(types_[i].num_elements());
  if (types_[i].dtype == DType::kFloat32) {
    const float* const data = static_cast<const float*>(addresses_[i]);
    return std::vector<double>(data, data + count);
  }
  const int32_t* const data = static_cast<const int32_t*>(addresses_[i]);
  return std::vector<double>(data, data + count);
}

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
