#ifndef TESTS_KERNELS_REFERENCE_H_
#define TESTS_KERNELS_REFERENCE_H_

#include <string>
#include <vector>

#include "kernels/base/tensor_type.h"
#include "kernels/registry/kernel.h"

namespace pipeloom {

// A tensor whose elements are held in double, for references that share no arithmetic with the kernels.
struct ReferenceTensor {
  TensorType type;
  std::vector<double> values;
};

// Whether `op` has a reference.
bool HasReference(const std::string& op);

// Plain loops over `operands` (inputs, then outputs) in double: what they hold after the op has run.
void RunReference(const KernelSpec& spec, std::vector<ReferenceTensor>& operands);

}  // namespace pipeloom

#endif  // TESTS_KERNELS_REFERENCE_H_
