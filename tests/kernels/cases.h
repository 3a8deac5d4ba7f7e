#ifndef TESTS_KERNELS_CASES_H_
#define TESTS_KERNELS_CASES_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/registry/kernel.h"
#include "tests/kernels/reference.h"

namespace pipeloom {

// One kernel to make and run.
struct KernelCase {
  KernelSpec spec;
  bool in_place = false;  // the result may stand where the first input stands

  std::string Name() const;  // what a failure is told by: op, types and attributes
  friend std::ostream& operator<<(std::ostream& os, const KernelCase& c) { return os << c.Name(); }
};

// Every op with the sizes, broadcasts and attributes that matter to it.
std::vector<KernelCase> AllKernelCases();

// Operands (inputs, then outputs filled with what no result should keep) that suit the case: labels within the classes
// or ignored, second moments not negative, divisors away from zero. The same for the same seed.
std::vector<RefTensor> MakeOperands(const KernelSpec& spec, uint32_t seed);

}  // namespace pipeloom

#endif  // TESTS_KERNELS_CASES_H_
