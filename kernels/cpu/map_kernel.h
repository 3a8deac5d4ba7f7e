#ifndef KERNELS_CPU_MAP_KERNEL_H_
#define KERNELS_CPU_MAP_KERNEL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cpu/simd.h"
#include "kernels/registry/kernel.h"

namespace pipeloom {

// One loop over the elements of operands of equal shape: Body::Run(operands, count).
class MapKernel : public Kernel {
 public:
  using MapLoop = Loop<void* const*, int64_t>;

  MapKernel(MapLoop loop, int64_t count) : loop_(loop), count_(count) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    loop_(operands.data(), count_);
    return absl::OkStatus();
  }

 private:
  MapLoop loop_;
  int64_t count_;
};

// A factory for MapKernels of Body; the first input has the shape that all operands share.
template <typename Body>
absl::StatusOr<std::unique_ptr<Kernel>> MakeMapKernel(const KernelSpec& spec) {
  return std::make_unique<MapKernel>(BestVariant<Body>(&Body::Run), spec.inputs[0].num_elements());
}

}  // namespace pipeloom

#endif  // KERNELS_CPU_MAP_KERNEL_H_
