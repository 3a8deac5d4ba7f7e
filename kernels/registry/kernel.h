#ifndef KERNELS_REGISTRY_KERNEL_H_
#define KERNELS_REGISTRY_KERNEL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/base/attributes.h"
#include "kernels/base/tensor_type.h"

namespace pipeloom {

// What a kernel is made for: one op with fixed types and attributes. Everything that can be decided from it is decided
// when the kernel is made, so that Run only moves data.
struct KernelSpec {
  std::string op;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  AttributeMap attributes = {};
  int threads = 1;  // compute threads of the rank; part of the spec since it changes bits
};

// One op ready to run. Used by one thread at a time; holds no data of its own between runs.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // `operands` are the addresses of the inputs, then of the outputs, dense row-major as the spec says and aligned to
  // the element; an output may be the same address as an input only where the op table allows it. `scratch` has
  // scratch_bytes() bytes, aligned to 64. Allocates nothing (oneDNN's own calls aside). An error (a label out of range)
  // names the value and its position; outputs are then unspecified.
  virtual absl::Status Run(absl::Span<void* const> operands, void* scratch) = 0;

  virtual size_t scratch_bytes() const { return 0; }

  // What does the work, such as "brg:avx512_core"; part of the digest that ranks compare. Stable over runs.
  virtual std::string implementation() const { return "loop"; }
};

}  // namespace pipeloom

#endif  // KERNELS_REGISTRY_KERNEL_H_
