#include <algorithm>

#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

absl::Status WantIds(OperandTypes operands, int operand) {
  const DType dtype = operands[operand].dtype;
  if (dtype == DType::kInt32 || dtype == DType::kInt64) return absl::OkStatus();
  return Refuse(Describe(operands, operand), ", the ids, is not of dtype i32 or i64");
}

// The rows of a table's axis 0: (table, ids).
absl::StatusOr<std::vector<TensorType>> GatherShape(OperandTypes operands, const AttributeMap&) {
  RETURN_IF_ERROR(WantIds(operands, 1));
  const TensorType& table = operands[0];
  if (table.rank() == 0) return Refuse(Describe(operands, 0), ", the table, has no rows");
  TensorType result{table.dtype, operands[1].shape};
  result.shape.insert(result.shape.end(), table.shape.begin() + 1, table.shape.end());
  if (!HasSaneExtents(result.shape))
    return Refuse("the rows of ", Describe(operands, 1), " are more than 2^60 elements");
  return std::vector<TensorType>{std::move(result)};
}

// (the gradient of the rows, ids)
absl::StatusOr<std::vector<TensorType>> GatherGradShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kFloat32));
  RETURN_IF_ERROR(WantIds(operands, 1));
  RETURN_IF_ERROR(WantAtLeast(attributes, "rows", 0, 0));
  RETURN_IF_ERROR(WantAtLeast(attributes, "group", 1, 1));
  const Shape& rows = operands[0].shape;
  const Shape& ids = operands[1].shape;
  const auto row_begin = rows.begin() + static_cast<int64_t>(std::min(ids.size(), rows.size()));
  if (Shape(rows.begin(), row_begin) != ids) {
    return Refuse(Describe(operands, 0), " has no row for each id of ", Describe(operands, 1));
  }
  Shape table = {GetInt(attributes, "rows", 0)};
  table.insert(table.end(), row_begin, rows.end());
  if (!HasSaneExtents(table)) return Refuse("a table ", ShapeToString(table), " has more than 2^60 elements");
  return std::vector<TensorType>{{DType::kFloat32, std::move(table)}};
}

Value* GatherGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  if (operand != 0) return nullptr;
  return builder.Emit("gather_grad", {gradient, node.operands[1]}, {{"rows", node.operands[0]->type.shape[0]}});
}

// Operands 0 and 1 with one extent free, that of the axis.
absl::Status WantIdsAlongAxis(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantIds(operands, 1));
  const int64_t axis = GetInt(attributes, "axis", 0);
  RETURN_IF_ERROR(WantAxis(operands, axis));
  TensorType wanted{operands[1].dtype, operands[0].shape};
  if (operands[1].rank() == wanted.rank()) wanted.shape[axis] = operands[1].shape[axis];
  if (operands[1] == wanted) return absl::OkStatus();
  return Refuse(Describe(operands, 1), ", the ids, differs from ", Describe(operands, 0), " in more than axis ", axis);
}

// (x, ids): along the axis the elements of x that the ids name, for each place of the ids.
absl::StatusOr<std::vector<TensorType>> GatherAlongAxisShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantIdsAlongAxis(operands, attributes));
  return std::vector<TensorType>{{operands[0].dtype, operands[1].shape}};
}

// (addends, ids): zeros of `size` along the axis, and each addend added to the element that its id names.
absl::StatusOr<std::vector<TensorType>> ScatterAddAlongAxisShape(OperandTypes operands,
                                                                 const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kFloat32));
  RETURN_IF_ERROR(WantIdsAlongAxis(operands, attributes));
  RETURN_IF_ERROR(WantType(operands, 1, {operands[1].dtype, operands[0].shape}, "an id for each addend"));
  RETURN_IF_ERROR(WantAtLeast(attributes, "size", 0, 0));
  TensorType result = operands[0];
  result.shape[GetInt(attributes, "axis", 0)] = GetInt(attributes, "size", 0);
  if (!HasSaneExtents(result.shape)) return Refuse(ShapeToString(result.shape), " has more than 2^60 elements");
  return std::vector<TensorType>{std::move(result)};
}

Value* GatherAlongAxisGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  if (operand != 0) return nullptr;
  const int64_t axis = GetInt(node.attributes, "axis", 0);
  return builder.Emit("scatter_add_along_axis", {gradient, node.operands[1]},
                      {{"axis", axis}, {"size", node.operands[0]->type.shape[axis]}});
}

Value* ScatterAddAlongAxisGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  if (operand != 0) return nullptr;
  return builder.Emit("gather_along_axis", {gradient, node.operands[1]},
                      {{"axis", GetInt(node.attributes, "axis", 0)}});
}

}  // namespace

std::vector<OpDef> GatherOps() {
  const OpTraits contracts{/*elementwise=*/false, /*contracts=*/true};
  const AttributeSpec axis = {"axis", AttributeType::kInt, /*required=*/true};
  const std::vector<AttributeSpec> grad = {{"rows", AttributeType::kInt, /*required=*/true},
                                           {"group", AttributeType::kInt}};
  return {
      {"gather", 2, 2, {}, GatherShape, GatherGradient},
      {"gather_grad", 2, 2, grad, GatherGradShape, nullptr, FlopsOfOperand, contracts},
      {"gather_along_axis", 2, 2, {axis}, GatherAlongAxisShape, GatherAlongAxisGradient},
      {"scatter_add_along_axis",
       2,
       2,
       {axis, {"size", AttributeType::kInt, /*required=*/true}},
       ScatterAddAlongAxisShape,
       ScatterAddAlongAxisGradient,
       FlopsOfOperand},
  };
}

}  // namespace pipeloom::op_rules
