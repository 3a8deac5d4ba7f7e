#include <limits>

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

// f32 rows along the last axis of operand `x`, and how they are normalized.
absl::Status WantRows(OperandTypes operands, const AttributeMap& attributes, int x) {
  RETURN_IF_ERROR(WantDType(operands, x, DType::kFloat32));
  if (operands[x].rank() == 0) return Refuse(Describe(operands, x), " has no axis to normalize");
  const double eps = GetDouble(attributes, "eps", 1e-5);
  if (eps > 0 && eps <= std::numeric_limits<float>::max()) return absl::OkStatus();
  return Refuse("eps is ", eps, "; give a finite one above 0");
}

TensorType AlongRows(const TensorType& x) { return {DType::kFloat32, {x.shape.back()}}; }

absl::StatusOr<std::vector<TensorType>> LayerNormShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantRows(operands, attributes, 0));
  RETURN_IF_ERROR(WantType(operands, 1, AlongRows(operands[0]), "gamma"));
  RETURN_IF_ERROR(WantType(operands, 2, AlongRows(operands[0]), "beta"));
  return std::vector<TensorType>{operands[0]};
}

// (dy, x, gamma)
absl::StatusOr<std::vector<TensorType>> LayerNormGradXShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantRows(operands, attributes, 1));
  RETURN_IF_ERROR(WantType(operands, 0, operands[1], "the gradient of the result"));
  RETURN_IF_ERROR(WantType(operands, 2, AlongRows(operands[1]), "gamma"));
  return std::vector<TensorType>{operands[1]};
}

// (dy, x)
absl::StatusOr<std::vector<TensorType>> LayerNormGradGammaShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantRows(operands, attributes, 1));
  RETURN_IF_ERROR(WantType(operands, 0, operands[1], "the gradient of the result"));
  RETURN_IF_ERROR(WantAtLeast(attributes, "group", 1, 1));
  return std::vector<TensorType>{AlongRows(operands[1])};
}

// One node for each operand, so that those of gamma and beta, which sum over rows, can run in W.
Value* LayerNormGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  Value* x = node.operands[0];
  if (operand == 0) return builder.Emit("layer_norm_grad_x", {gradient, x, node.operands[1]}, node.attributes);
  if (operand == 1) return builder.Emit("layer_norm_grad_gamma", {gradient, x}, node.attributes);
  return ReduceTo(builder, gradient, node.operands[2]->type.shape);
}

// For each element 4 of the mean and the variance, then 4 of the result.
int64_t LayerNormFlops(const Node& node) { return 8 * FlopsOfOperand(node); }
// 4 of the mean and the variance, 6 of the two means over the row, 4 of the result.
int64_t LayerNormGradXFlops(const Node& node) { return 14 * FlopsOfOperand(node); }

}  // namespace

std::vector<OpDef> NormalizationOps() {
  const OpTraits contracts{/*elementwise=*/false, /*contracts=*/true};
  const AttributeSpec eps = {"eps", AttributeType::kDouble};
  const std::vector<AttributeSpec> axis = {{"axis", AttributeType::kInt}};
  return {
      {"softmax", 1, 1, axis, SoftmaxShape, SoftmaxGradient, SoftmaxFlops},
      {"softmax_grad", 2, 2, axis, SoftmaxShape, nullptr, SoftmaxGradFlops},
      {"log_softmax", 1, 1, axis, SoftmaxShape, SoftmaxGradient, SoftmaxFlops},
      {"log_softmax_grad", 2, 2, axis, SoftmaxShape, nullptr, SoftmaxGradFlops},
      {"layer_norm", 3, 3, {eps}, LayerNormShape, LayerNormGradient, LayerNormFlops},
      {"layer_norm_grad_x", 3, 3, {eps}, LayerNormGradXShape, nullptr, LayerNormGradXFlops},
      {"layer_norm_grad_gamma",
       2,
       2,
       {eps, {"group", AttributeType::kInt}},
       LayerNormGradGammaShape,
       nullptr,
       LayerNormFlops,
       contracts},
  };
}

}  // namespace pipeloom::op_rules
