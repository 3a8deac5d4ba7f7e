#include "passes/ir/op_rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"

namespace pipeloom::op_rules {

bool HasSaneExtents(const Shape& shape) {
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || extent > kMostElements / elements) return false;
    elements *= std::max<int64_t>(extent, 1);
  }
  return true;
}

std::string Describe(OperandTypes operands, int operand) {
  return absl::StrCat("operand ", operand, " ", operands[operand].ToString());
}

absl::Status WantDType(OperandTypes operands, int operand, DType dtype) {
  if (operands[operand].dtype == dtype) return absl::OkStatus();
  return Refuse(Describe(operands, operand), " is not of dtype ", Info(dtype).name);
}

absl::Status WantRank(OperandTypes operands, int operand, int rank) {
  if (operands[operand].rank() == rank) return absl::OkStatus();
  return Refuse(Describe(operands, operand), " has rank ", operands[operand].rank(), ", not ", rank);
}

absl::Status WantType(OperandTypes operands, int operand, const TensorType& type, absl::string_view role) {
  if (operands[operand] == type) return absl::OkStatus();
  return Refuse(Describe(operands, operand), ", ", role, ", is not ", type.ToString());
}

absl::Status WantAxis(OperandTypes operands, int64_t axis) {
  const int rank = operands[0].rank();
  if (axis >= 0 && axis < rank) return absl::OkStatus();
  return Refuse("axis ", axis, " is not one of the ", rank, " axes of ", Describe(operands, 0), ", which count from 0");
}

absl::Status WantAtLeast(const AttributeMap& attributes, absl::string_view name, int64_t fallback, int64_t least) {
  const int64_t value = GetInt(attributes, name, fallback);
  if (value >= least) return absl::OkStatus();
  return Refuse(name, " is ", value, "; give at least ", least);
}

absl::Status WantOneOf(const AttributeMap& attributes, absl::string_view name, absl::string_view fallback,
                       const std::vector<absl::string_view>& choices) {
  const std::string value = GetString(attributes, name, fallback);
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return absl::OkStatus();
  return Refuse(name, " is \"", value, "\"; give one of \"", absl::StrJoin(choices, "\", \""), "\"");
}

absl::StatusOr<Shape> BroadcastOf(OperandTypes operands, int a, int b) {
  const Shape& left = operands[a].shape;
  const Shape& right = operands[b].shape;
  const size_t rank = std::max(left.size(), right.size());
  Shape shape(rank, 1);
  for (size_t back = 1; back <= rank; ++back) {
    const int64_t of_left = back <= left.size() ? left[left.size() - back] : 1;
    const int64_t of_right = back <= right.size() ? right[right.size() - back] : 1;
    if (of_left != of_right && of_left != 1 && of_right != 1) {
      return Refuse(Describe(operands, a), " and ", Describe(operands, b), " do not broadcast: extents ", of_left,
                    " and ", of_right, " at axis ", rank - back, " of the result; give equal ones, or 1");
    }
    shape[rank - back] = of_left == 1 ? of_right : of_left;
  }
  return shape;
}

absl::StatusOr<std::vector<TensorType>> LikeOperand0(OperandTypes operands, const AttributeMap&) {
  return std::vector<TensorType>{operands[0]};
}

absl::StatusOr<std::vector<TensorType>> LikeFloatOperands(OperandTypes operands, const AttributeMap&) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kFloat32));
  for (int i = 1; i < static_cast<int>(operands.size()); ++i) {
    if (operands[i] == operands[0]) continue;
    return Refuse(Describe(operands, i), " is not of the type of ", Describe(operands, 0));
  }
  return std::vector<TensorType>{operands[0]};
}

absl::StatusOr<std::vector<TensorType>> BroadcastShape(OperandTypes operands, const AttributeMap&) {
  RETURN_IF_ERROR(WantDType(operands, 1, operands[0].dtype));
  if (operands[0].dtype == DType::kBool) return Refuse(Describe(operands, 0), " is no number; cast it first");
  ASSIGN_OR_RETURN(Shape shape, BroadcastOf(operands, 0, 1));
  return std::vector<TensorType>{{operands[0].dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<TensorType>> FloatBroadcastShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kFloat32));
  return BroadcastShape(operands, attributes);
}

Value* ReduceTo(GraphBuilder& builder, Value* gradient, const Shape& shape) {
  const Shape& from = gradient->type.shape;
  const size_t leading = from.size() - shape.size();
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < from.size(); ++axis) {
    if (axis < leading || (shape[axis - leading] == 1 && from[axis] != 1)) axes.push_back(static_cast<int64_t>(axis));
  }
  if (axes.empty()) return gradient;
  AttributeMap attributes = {{"axes", axes}};
  if (leading == 0) attributes["keep_dims"] = true;
  Value* sum = builder.Emit("reduce_sum", {gradient}, std::move(attributes));
  return sum->type.shape == shape ? sum : builder.Emit("reshape", {sum}, {{"shape", ToInts(shape)}});
}

std::vector<int64_t> ToInts(const Shape& shape) { return {shape.begin(), shape.end()}; }

int64_t FlopsOfResult(const Node& node) { return node.results[0]->type.num_elements(); }
int64_t FlopsOfOperand(const Node& node) { return node.operands[0]->type.num_elements(); }

}  // namespace pipeloom::op_rules
