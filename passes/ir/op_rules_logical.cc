#include <utility>

#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

absl::StatusOr<std::vector<TensorType>> CompareShape(OperandTypes operands, const AttributeMap&) {
  RETURN_IF_ERROR(WantDType(operands, 1, operands[0].dtype));
  ASSIGN_OR_RETURN(Shape shape, BroadcastOf(operands, 0, 1));
  return std::vector<TensorType>{{DType::kBool, std::move(shape)}};
}

absl::StatusOr<std::vector<TensorType>> LogicalShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kBool));
  return CompareShape(operands, attributes);
}

absl::StatusOr<std::vector<TensorType>> NotShape(OperandTypes operands, const AttributeMap&) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kBool));
  return std::vector<TensorType>{operands[0]};
}

// (condition, where it holds, where it does not)
absl::StatusOr<std::vector<TensorType>> WhereShape(OperandTypes operands, const AttributeMap&) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kBool));
  RETURN_IF_ERROR(WantDType(operands, 2, operands[1].dtype));
  ASSIGN_OR_RETURN(const Shape values, BroadcastOf(operands, 1, 2));
  const TensorType with_values[] = {operands[0], {operands[1].dtype, values}};
  ASSIGN_OR_RETURN(Shape shape, BroadcastOf(with_values, 0, 1));
  return std::vector<TensorType>{{operands[1].dtype, std::move(shape)}};
}

Value* WhereGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  if (operand == 0) return nullptr;
  Value* zero = builder.Scalar(0);
  Value* kept = operand == 1 ? builder.Emit("where", {node.operands[0], gradient, zero})
                             : builder.Emit("where", {node.operands[0], zero, gradient});
  return ReduceTo(builder, kept, node.operands[operand]->type.shape);
}

absl::StatusOr<std::vector<TensorType>> CastShape(OperandTypes operands, const AttributeMap& attributes) {
  ASSIGN_OR_RETURN(const DType to, ParseDType(GetString(attributes, "to", "")));
  return std::vector<TensorType>{{to, operands[0].shape}};
}

// Called for f32 operands, whose gradient is f32: the cast is none.
Value* CastGradient(GraphBuilder&, const Node& node, int, Value* gradient) {
  return Info(node.operands[0]->type.dtype).floating ? gradient : nullptr;
}

}  // namespace

std::vector<OpDef> LogicalOps() {
  const OpTraits elementwise{/*elementwise=*/true};
  const std::vector<AttributeSpec> none;
  std::vector<OpDef> ops;
  for (const char* op : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    ops.push_back({op, 2, 2, none, CompareShape});
  }
  ops.push_back({"logical_and", 2, 2, none, LogicalShape, nullptr, nullptr, elementwise});
  ops.push_back({"logical_or", 2, 2, none, LogicalShape, nullptr, nullptr, elementwise});
  ops.push_back({"logical_not", 1, 1, none, NotShape, nullptr, nullptr, elementwise});
  ops.push_back({"where", 3, 3, none, WhereShape, WhereGradient, nullptr, elementwise});
  ops.push_back({"cast", 1, 1, {{"to", AttributeType::kString, /*required=*/true}}, CastShape, CastGradient});
  return ops;
}

}  // namespace pipeloom::op_rules
