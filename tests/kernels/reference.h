#ifndef TESTS_KERNELS_REFERENCE_H_
#define TESTS_KERNELS_REFERENCE_H_

#include <vector>

#include "kernels/registry/kernel.h"
#include "tests/testlib/reference_ops.h"

namespace pipeloom {

// The op's reference in double, with the operands of its kernel (inputs, then outputs): they hold afterwards what they
// hold after the kernel has run, those that an optimizer writes in place too.
void RunReference(const KernelSpec& spec, std::vector<RefTensor>& operands);

}  // namespace pipeloom

#endif  // TESTS_KERNELS_REFERENCE_H_
