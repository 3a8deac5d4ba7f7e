#ifndef TESTS_OPS_GRADIENT_CASES_H_
#define TESTS_OPS_GRADIENT_CASES_H_

#include <string>
#include <vector>

#include "kernels/base/attributes.h"
#include "kernels/base/tensor_type.h"

namespace pipeloom {

// A node whose gradient rule is compared with central differences.
struct GradientCase {
  std::string op;
  std::vector<TensorType> operands;
  AttributeMap attributes;
};

// At least one case for each op with a gradient rule: all attribute combinations, several shapes.
std::vector<GradientCase> GradientCases();

// What the case is, for messages: "matmul(f32[2,3], f32[3,4]) {transpose_a}".
std::string ToString(const GradientCase& c);

}  // namespace pipeloom

#endif  // TESTS_OPS_GRADIENT_CASES_H_
