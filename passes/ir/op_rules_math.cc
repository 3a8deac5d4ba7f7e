#include <utility>

#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

Value* ExpGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit("mul", {gradient, node.results[0]});
}

Value* LogGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit("div", {gradient, node.operands[0]});
}

Value* SqrtGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit("div", {builder.Emit("mul", {gradient, builder.Scalar(0.5f)}), node.results[0]});
}

// x^(-1/2) has -1/2 x^(-3/2): the result over x, with the factor.
Value* RsqrtGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  Value* quotient = builder.Emit("div", {node.results[0], node.operands[0]});
  return builder.Emit("mul", {builder.Emit("mul", {gradient, builder.Scalar(-0.5f)}), quotient});
}

Value* SquareGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit("mul", {builder.Emit("mul", {gradient, builder.Scalar(2.f)}), node.operands[0]});
}

Value* AbsGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit("mul", {gradient, builder.Emit("sign", {node.operands[0]})});
}

Value* ReciprocalGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit("neg", {builder.Emit("mul", {gradient, builder.Emit("square", {node.results[0]})})});
}

// 2 / sqrt(pi) exp(-x^2).
Value* ErfGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  Value* bell = builder.Emit("exp", {builder.Emit("neg", {builder.Emit("square", {node.operands[0]})})});
  return builder.Emit("mul", {builder.Emit("mul", {gradient, builder.Scalar(1.1283791671f)}), bell});
}

Value* SinGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit("mul", {gradient, builder.Emit("cos", {node.operands[0]})});
}

Value* CosGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit("neg", {builder.Emit("mul", {gradient, builder.Emit("sin", {node.operands[0]})})});
}

// a^b: b a^(b-1) by a, a^b log(a) by b.
Value* PowGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  Value* base = node.operands[0];
  Value* exponent = node.operands[1];
  Value* derivative = nullptr;
  if (operand == 0) {
    Value* less_one = builder.Emit("sub", {exponent, builder.Scalar(1.f)});
    derivative = builder.Emit("mul", {exponent, builder.Emit("pow", {base, less_one})});
  } else {
    derivative = builder.Emit("mul", {node.results[0], builder.Emit("log", {base})});
  }
  return ReduceTo(builder, builder.Emit("mul", {gradient, derivative}), node.operands[operand]->type.shape);
}

// All of it to the operand that was taken, to the first one where both are equal.
Value* ExtremeGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  const char* compare = node.op == "maximum" ? "greater_equal" : "less_equal";
  Value* first = builder.Emit(compare, {node.operands[0], node.operands[1]});
  Value* zero = builder.Scalar(0);
  Value* taken =
      operand == 0 ? builder.Emit("where", {first, gradient, zero}) : builder.Emit("where", {first, zero, gradient});
  return ReduceTo(builder, taken, node.operands[operand]->type.shape);
}

}  // namespace

std::vector<OpDef> MathOps() {
  const OpTraits elementwise{/*elementwise=*/true};
  const std::vector<AttributeSpec> none;
  const std::pair<absl::string_view, GradientRule> unary[] = {
      {"exp", ExpGradient},     {"log", LogGradient},       {"sqrt", SqrtGradient},
      {"rsqrt", RsqrtGradient}, {"square", SquareGradient}, {"reciprocal", ReciprocalGradient},
      {"abs", AbsGradient},     {"erf", ErfGradient},       {"sin", SinGradient},
      {"cos", CosGradient},     {"sign", nullptr},          {"floor", nullptr}};
  std::vector<OpDef> ops;
  for (const auto& [op, gradient] : unary) {
    ops.push_back({op, 1, 1, none, LikeFloatOperands, gradient, FlopsOfResult, elementwise});
  }
  ops.push_back({"pow", 2, 2, none, FloatBroadcastShape, PowGradient, FlopsOfResult, elementwise});
  for (const char* op : {"maximum", "minimum"}) {
    ops.push_back({op, 2, 2, none, BroadcastShape, ExtremeGradient, FlopsOfResult, elementwise});
  }
  return ops;
}

}  // namespace pipeloom::op_rules
