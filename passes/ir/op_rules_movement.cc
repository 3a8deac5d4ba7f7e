#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

std::string Ints(const std::vector<int64_t>& values) { return absl::StrCat("[", absl::StrJoin(values, ", "), "]"); }

absl::StatusOr<Shape> ShapeAttribute(const AttributeMap& attributes) {
  const std::vector<int64_t> extents = GetInts(attributes, "shape", {});
  for (int64_t extent : extents) {
    if (extent < 0) return Refuse("shape ", Ints(extents), " has the extent ", extent, "; give 0 or more");
  }
  const Shape shape(extents.begin(), extents.end());
  if (!HasSaneExtents(shape)) return Refuse("shape ", Ints(extents), " has more than 2^60 elements");
  return shape;
}

// One value for each axis of operand 0, none below 0.
absl::Status WantPerAxis(OperandTypes operands, absl::string_view name, const std::vector<int64_t>& values) {
  if (values.size() != operands[0].shape.size()) {
    return Refuse(name, " ", Ints(values), " does not name each of the ", operands[0].rank(), " axes of ",
                  Describe(operands, 0));
  }
  if (std::any_of(values.begin(), values.end(), [](int64_t value) { return value < 0; })) {
    return Refuse(name, " ", Ints(values), " of ", Describe(operands, 0), " has a negative value; give 0 or more");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TensorType>> BroadcastToShape(OperandTypes operands, const AttributeMap& attributes) {
  ASSIGN_OR_RETURN(const Shape shape, ShapeAttribute(attributes));
  const Shape& from = operands[0].shape;
  bool fits = from.size() <= shape.size();
  for (size_t back = 1; fits && back <= from.size(); ++back) {
    const int64_t extent = from[from.size() - back];
    fits = extent == 1 || extent == shape[shape.size() - back];
  }
  if (!fits) {
    return Refuse(Describe(operands, 0), " does not broadcast to ", ShapeToString(shape),
                  "; each of its extents, from the last, must be 1 or that of the shape");
  }
  return std::vector<TensorType>{{operands[0].dtype, shape}};
}

absl::StatusOr<std::vector<TensorType>> ReshapeShape(OperandTypes operands, const AttributeMap& attributes) {
  ASSIGN_OR_RETURN(const Shape shape, ShapeAttribute(attributes));
  if (NumElements(shape) != operands[0].num_elements()) {
    return Refuse(Describe(operands, 0), " has ", operands[0].num_elements(), " elements, shape ", ShapeToString(shape),
                  " has ", NumElements(shape));
  }
  return std::vector<TensorType>{{operands[0].dtype, shape}};
}

absl::StatusOr<std::vector<TensorType>> TransposeShape(OperandTypes operands, const AttributeMap& attributes) {
  const std::vector<int64_t> perm = GetInts(attributes, "perm", {});
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> wanted(operands[0].shape.size());
  std::iota(wanted.begin(), wanted.end(), 0);
  if (sorted != wanted) {
    return Refuse("perm ", Ints(perm), " is not an order of the ", operands[0].rank(), " axes of ",
                  Describe(operands, 0));
  }
  Shape shape;
  for (int64_t axis : perm) shape.push_back(operands[0].shape[axis]);
  return std::vector<TensorType>{{operands[0].dtype, shape}};
}

absl::StatusOr<std::vector<TensorType>> SliceShape(OperandTypes operands, const AttributeMap& attributes) {
  const std::vector<int64_t> begin = GetInts(attributes, "begin", {});
  const std::vector<int64_t> size = GetInts(attributes, "size", {});
  RETURN_IF_ERROR(WantPerAxis(operands, "begin", begin));
  RETURN_IF_ERROR(WantPerAxis(operands, "size", size));
  for (size_t axis = 0; axis < begin.size(); ++axis) {
    if (begin[axis] > operands[0].shape[axis] - size[axis]) {
      return Refuse("begin ", begin[axis], " and size ", size[axis], " reach over the extent ", operands[0].shape[axis],
                    " of axis ", axis, " of ", Describe(operands, 0));
    }
  }
  return std::vector<TensorType>{{operands[0].dtype, Shape(size.begin(), size.end())}};
}

absl::StatusOr<std::vector<TensorType>> PadShape(OperandTypes operands, const AttributeMap& attributes) {
  const std::vector<int64_t> before = GetInts(attributes, "before", {});
  const std::vector<int64_t> after = GetInts(attributes, "after", {});
  RETURN_IF_ERROR(WantPerAxis(operands, "before", before));
  RETURN_IF_ERROR(WantPerAxis(operands, "after", after));
  Shape shape = operands[0].shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (before[axis] > kMostElements || after[axis] > kMostElements) {
      return Refuse("before ", Ints(before), " and after ", Ints(after), " pad ", Describe(operands, 0),
                    " to more than 2^60 elements");
    }
    shape[axis] += before[axis] + after[axis];
  }
  return std::vector<TensorType>{{operands[0].dtype, shape}};
}

absl::StatusOr<std::vector<TensorType>> ConcatShape(OperandTypes operands, const AttributeMap& attributes) {
  const int64_t axis = GetInt(attributes, "axis", 0);
  RETURN_IF_ERROR(WantAxis(operands, axis));
  TensorType result = operands[0];
  for (int i = 1; i < static_cast<int>(operands.size()); ++i) {
    TensorType wanted = operands[0];
    if (operands[i].rank() == wanted.rank()) wanted.shape[axis] = operands[i].shape[axis];
    if (operands[i] != wanted) {
      return Refuse(Describe(operands, 0), " and ", Describe(operands, i), " do not concatenate: they differ in more",
                    " than axis ", axis);
    }
    result.shape[axis] += operands[i].shape[axis];
  }
  return std::vector<TensorType>{std::move(result)};
}

Value* BroadcastToGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return ReduceTo(builder, gradient, node.operands[0]->type.shape);
}

Value* ReshapeGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit("reshape", {gradient}, {{"shape", ToInts(node.operands[0]->type.shape)}});
}

Value* TransposeGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  const std::vector<int64_t> perm = GetInts(node.attributes, "perm", {});
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<int64_t>(i);
  return builder.Emit("transpose", {gradient}, {{"perm", inverse}});
}

Value* SliceGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  const std::vector<int64_t> before = GetInts(node.attributes, "begin", {});
  std::vector<int64_t> after = ToInts(node.operands[0]->type.shape);
  for (size_t axis = 0; axis < after.size(); ++axis) after[axis] -= before[axis] + gradient->type.shape[axis];
  return builder.Emit("pad", {gradient}, {{"before", before}, {"after", after}});
}

Value* PadGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return builder.Emit(
      "slice", {gradient},
      {{"begin", GetInts(node.attributes, "before", {})}, {"size", ToInts(node.operands[0]->type.shape)}});
}

Value* ConcatGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  const int64_t axis = GetInt(node.attributes, "axis", 0);
  std::vector<int64_t> begin(gradient->type.shape.size(), 0);
  for (int i = 0; i < operand; ++i) begin[axis] += node.operands[i]->type.shape[axis];
  return builder.Emit("slice", {gradient}, {{"begin", begin}, {"size", ToInts(node.operands[operand]->type.shape)}});
}

Value* CopyGradient(GraphBuilder&, const Node&, int, Value* gradient) { return gradient; }

std::vector<AttributeSpec> RequiredInts(const std::vector<absl::string_view>& names) {
  std::vector<AttributeSpec> specs;
  specs.reserve(names.size());
  for (absl::string_view name : names) specs.push_back({name, AttributeType::kInts, /*required=*/true});
  return specs;
}

}  // namespace

std::vector<OpDef> MovementOps() {
  const OpTraits view{/*elementwise=*/false, /*contracts=*/false,
                      /*view=*/true};
  const std::vector<AttributeSpec> axis = {{"axis", AttributeType::kInt, /*required=*/true}};
  return {
      {"broadcast_to", 1, 1, RequiredInts({"shape"}), BroadcastToShape, BroadcastToGradient},
      {"reshape", 1, 1, RequiredInts({"shape"}), ReshapeShape, ReshapeGradient, nullptr, view},
      {"transpose", 1, 1, RequiredInts({"perm"}), TransposeShape, TransposeGradient},
      {"slice", 1, 1, RequiredInts({"begin", "size"}), SliceShape, SliceGradient},
      {"pad", 1, 1, RequiredInts({"before", "after"}), PadShape, PadGradient},
      {"concat", 1, -1, axis, ConcatShape, ConcatGradient},
      {"copy", 1, 1, {}, LikeOperand0, CopyGradient},
  };
}

}  // namespace pipeloom::op_rules
