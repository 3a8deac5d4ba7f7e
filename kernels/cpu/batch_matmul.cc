#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "kernels/base/status_macros.h"
#include "kernels/cpu/families.h"
#include "kernels/cpu/matmul.h"

namespace pipeloom {
namespace {

TensorType MatrixOf(const TensorType& type) { return {type.dtype, {type.shape.end()[-2], type.shape.end()[-1]}}; }

// One product after the other with the kernel of matmul, so that each has the bits of that product alone.
class BatchMatmulKernel : public Kernel {
 public:
  BatchMatmulKernel(const KernelSpec& spec, std::unique_ptr<Kernel> product)
      : product_(std::move(product)),
        steps_{MatrixOf(spec.inputs[0]).num_elements(), MatrixOf(spec.inputs[1]).num_elements(),
               MatrixOf(spec.outputs[0]).num_elements()},
        count_(NumElements(Shape(spec.outputs[0].shape.begin(), spec.outputs[0].shape.end() - 2))) {}

  absl::Status Run(absl::Span<void* const> operands, void* scratch) override {
    std::array<void*, 3> at = {operands[0], operands[1], operands[2]};
    for (int64_t i = 0; i < count_; ++i) {
      RETURN_IF_ERROR(product_->Run(at, scratch));
      for (size_t k = 0; k < at.size(); ++k) at[k] = static_cast<float*>(at[k]) + steps_[k];
    }
    return absl::OkStatus();
  }

  size_t scratch_bytes() const override { return product_->scratch_bytes(); }
  std::string implementation() const override { return product_->implementation(); }

 private:
  std::unique_ptr<Kernel> product_;
  std::array<int64_t, 3> steps_;  // elements of a matrix
  int64_t count_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeBatchMatmul(const KernelSpec& spec) {
  KernelSpec product = spec;
  product.op = "matmul";
  for (TensorType& type : product.inputs) type = MatrixOf(type);
  product.outputs[0] = MatrixOf(product.outputs[0]);
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, MakeMatmulKernel(product));
  return std::make_unique<BatchMatmulKernel>(spec, std::move(kernel));
}

}  // namespace

void RegisterBatchMatmulKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "batch_matmul", DType::kFloat32, &MakeBatchMatmul);
}

}  // namespace pipeloom
