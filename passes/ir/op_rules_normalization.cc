#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

// Kernels go over rows that lie in one piece; hosts transpose for another axis.
absl::StatusOr<std::vector<TensorType>> SoftmaxShape(OperandTypes operands, const AttributeMap& attributes) {
  const int64_t last = operands[0].rank() - 1;
  if (last < 0) return Refuse(Describe(operands, 0), " has no axis to go over");
  const int64_t axis = GetInt(attributes, "axis", -1);
  if (axis != -1 && axis != last) {
    return Refuse("axis ", axis, " is not the last one of ", Describe(operands, 0), "; give -1 or ", last,
                  ", and transpose for another axis");
  }
  return LikeFloatOperands(operands, attributes);
}

Value* SoftmaxGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit(node.op + "_grad", {gradient, node.results[0]}, node.attributes);
}

// A maximum, a difference, an exponential, a sum, and a quotient or a difference for each element.
int64_t SoftmaxFlops(const Node& node) { return 5 * FlopsOfResult(node); }
// Two products, a sum and a difference, or an exponential instead of one product.
int64_t SoftmaxGradFlops(const Node& node) { return 4 * FlopsOfResult(node); }

}  // namespace

std::vector<OpDef> NormalizationOps() {
  const std::vector<AttributeSpec> axis = {{"axis", AttributeType::kInt}};
  return {
      {"softmax", 1, 1, axis, SoftmaxShape, SoftmaxGradient, SoftmaxFlops},
      {"softmax_grad", 2, 2, axis, SoftmaxShape, nullptr, SoftmaxGradFlops},
      {"log_softmax", 1, 1, axis, SoftmaxShape, SoftmaxGradient, SoftmaxFlops},
      {"log_softmax_grad", 2, 2, axis, SoftmaxShape, nullptr, SoftmaxGradFlops},
  };
}

}  // namespace pipeloom::op_rules
