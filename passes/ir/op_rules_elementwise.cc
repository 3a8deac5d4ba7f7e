#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

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
