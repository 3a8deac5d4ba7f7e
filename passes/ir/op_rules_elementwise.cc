#include <algorithm>

#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

absl::StatusOr<std::vector<TensorType>> BroadcastShape(OperandTypes operands, const AttributeMap&) {
  RETURN_IF_ERROR(WantDType(operands, 1, operands[0].dtype));
  const Shape& a = operands[0].shape;
  const Shape& b = operands[1].shape;
  const size_t rank = std::max(a.size(), b.size());
  Shape shape(rank, 1);
  for (size_t back = 1; back <= rank; ++back) {
    const int64_t of_a = back <= a.size() ? a[a.size() - back] : 1;
    const int64_t of_b = back <= b.size() ? b[b.size() - back] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) {
      return Refuse(Describe(operands, 0), " and ", Describe(operands, 1), " do not broadcast: extents ", of_a, " and ",
                    of_b, " at axis ", rank - back, " of the result; give equal ones, or 1");
    }
    shape[rank - back] = of_a == 1 ? of_b : of_a;
  }
  return std::vector<TensorType>{{operands[0].dtype, shape}};
}

absl::StatusOr<std::vector<TensorType>> FloatBroadcastShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kFloat32));
  return BroadcastShape(operands, attributes);
}

Value* ReduceToOperand(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  return ReduceTo(builder, gradient, node.operands[operand]->type.shape);
}

Value* SubGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  Value* reduced = ReduceToOperand(builder, node, operand, gradient);
  return operand == 0 ? reduced : builder.Emit("neg", {reduced});
}

Value* MulGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  return ReduceToOperand(builder, node, operand, builder.Emit("mul", {gradient, node.operands[1 - operand]}));
}

Value* DivGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  Value* divisor = node.operands[1];
  if (operand == 0) return ReduceToOperand(builder, node, 0, builder.Emit("div", {gradient, divisor}));
  // d(a/b)/db = -(a/b)/b; the divisor divides after the sum, where it has the
  // fewest elements.
  Value* sum = ReduceToOperand(builder, node, 1, builder.Emit("mul", {gradient, node.results[0]}));
  return builder.Emit("neg", {builder.Emit("div", {sum, divisor})});
}

Value* NegGradient(GraphBuilder& builder, const Node&, int, Value* gradient) { return builder.Emit("neg", {gradient}); }

// Of ops whose gradient op is named after them and takes (dy, y), or (dy, x)
// for gelu.
Value* FromResultGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit(node.op + "_grad", {gradient, node.results[0]});
}

Value* GeluGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit("gelu_grad", {gradient, node.operands[0]}, node.attributes);
}

}  // namespace

std::vector<OpDef> ElementwiseOps() {
  const OpTraits elementwise{/*elementwise=*/true};
  const std::vector<AttributeSpec> none;
  const std::vector<AttributeSpec> gelu = {{"approximate", AttributeType::kBool}};
  return {
      {"add", 2, 2, none, BroadcastShape, ReduceToOperand, FlopsOfResult, elementwise},
      {"sub", 2, 2, none, BroadcastShape, SubGradient, FlopsOfResult, elementwise},
      {"mul", 2, 2, none, BroadcastShape, MulGradient, FlopsOfResult, elementwise},
      {"div", 2, 2, none, FloatBroadcastShape, DivGradient, FlopsOfResult, elementwise},
      {"neg", 1, 1, none, LikeFloatOperands, NegGradient, FlopsOfResult, elementwise},
      {"relu", 1, 1, none, LikeFloatOperands, FromResultGradient, FlopsOfResult, elementwise},
      {"relu_grad", 2, 2, none, LikeFloatOperands, nullptr, FlopsOfResult, elementwise},
      {"tanh", 1, 1, none, LikeFloatOperands, FromResultGradient, FlopsOfResult, elementwise},
      {"tanh_grad", 2, 2, none, LikeFloatOperands, nullptr, FlopsOfResult, elementwise},
      {"sigmoid", 1, 1, none, LikeFloatOperands, FromResultGradient, FlopsOfResult, elementwise},
      {"sigmoid_grad", 2, 2, none, LikeFloatOperands, nullptr, FlopsOfResult, elementwise},
      {"gelu", 1, 1, gelu, LikeFloatOperands, GeluGradient, FlopsOfResult, elementwise},
      {"gelu_grad", 2, 2, gelu, LikeFloatOperands, nullptr, FlopsOfResult, elementwise},
  };
}

}  // namespace pipeloom::op_rules
