#include <algorithm>
#include <numeric>

#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

// The axes summed over: all where none are given.
std::vector<int64_t> ReducedAxes(const AttributeMap& attributes, int rank) {
  std::vector<int64_t> axes = GetInts(attributes, "axes", {});
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

// `shape` with the reduced axes gone, or of extent 1.
Shape Reduced(const Shape& shape, const std::vector<int64_t>& axes, bool keep_dims) {
  Shape reduced;
  for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
    if (!std::binary_search(axes.begin(), axes.end(), axis)) {
      reduced.push_back(shape[axis]);
    } else if (keep_dims) {
      reduced.push_back(1);
    }
  }
  return reduced;
}

absl::StatusOr<std::vector<TensorType>> ReduceShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kFloat32));
  const std::vector<int64_t> axes = ReducedAxes(attributes, operands[0].rank());
  for (size_t i = 0; i < axes.size(); ++i) {
    RETURN_IF_ERROR(WantAxis(operands, axes[i]));
    if (i > 0 && axes[i] <= axes[i - 1]) {
      return Refuse("axes of ", Describe(operands, 0), " are not in ascending order: ", axes[i], " after ",
                    axes[i - 1]);
    }
  }
  RETURN_IF_ERROR(WantAtLeast(attributes, "group", 1, 1));
  const bool keep_dims = GetBool(attributes, "keep_dims", false);
  return std::vector<TensorType>{{operands[0].dtype, Reduced(operands[0].shape, axes, keep_dims)}};
}

Value* BroadcastToOperand(GraphBuilder& builder, const Node& node, Value* gradient) {
  const Shape& shape = node.operands[0]->type.shape;
  const std::vector<int64_t> axes = ReducedAxes(node.attributes, static_cast<int>(shape.size()));
  // Leading axes come back by broadcasting alone; others need their place held
  // by an extent of 1.
  const bool leading = axes.empty() || axes.back() + 1 == static_cast<int64_t>(axes.size());
  const Shape held = Reduced(shape, axes, true);
  if (!leading && gradient->type.shape != held) {
    gradient = builder.Emit("reshape", {gradient}, {{"shape", ToInts(held)}});
  }
  if (gradient->type.shape == shape) return gradient;
  return builder.Emit("broadcast_to", {gradient}, {{"shape", ToInts(shape)}});
}

Value* ReduceSumGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  return BroadcastToOperand(builder, node, gradient);
}

Value* ReduceMeanGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  const int64_t summed = node.operands[0]->type.num_elements() / std::max<int64_t>(1, gradient->type.num_elements());
  Value* share = builder.Emit("div", {gradient, builder.Scalar(static_cast<float>(summed))});
  return BroadcastToOperand(builder, node, share);
}

// To the elements that equal the maximum, each the same share.
Value* ReduceMaxGradient(GraphBuilder& builder, const Node& node, int, Value* gradient) {
  Value* x = node.operands[0];
  Value* most = BroadcastToOperand(builder, node, node.results[0]);
  Value* taken = builder.Emit("cast", {builder.Emit("equal", {x, most})}, {{"to", std::string("f32")}});
  Value* share = builder.Emit("div", {gradient, builder.Emit("reduce_sum", {taken}, node.attributes)});
  return builder.Emit("mul", {taken, BroadcastToOperand(builder, node, share)});
}

}  // namespace

std::vector<OpDef> ReductionOps() {
  const OpTraits contracts{/*elementwise=*/false, /*contracts=*/true};
  const std::vector<AttributeSpec> axes = {{"axes", AttributeType::kInts}, {"keep_dims", AttributeType::kBool}};
  std::vector<AttributeSpec> sum = axes;
  sum.push_back({"group", AttributeType::kInt});
  return {
      {"reduce_sum", 1, 1, sum, ReduceShape, ReduceSumGradient, FlopsOfOperand, contracts},
      {"reduce_mean", 1, 1, axes, ReduceShape, ReduceMeanGradient, FlopsOfOperand, contracts},
      {"reduce_max", 1, 1, axes, ReduceShape, ReduceMaxGradient, FlopsOfOperand},
  };
}

}  // namespace pipeloom::op_rules
