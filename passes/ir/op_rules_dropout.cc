#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

TensorType Counter() { return {DType::kInt64, {}}; }

// (x, step, micro-batch)
absl::StatusOr<std::vector<TensorType>> DropoutShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kFloat32));
  RETURN_IF_ERROR(WantType(operands, 1, Counter(), "the step"));
  RETURN_IF_ERROR(WantType(operands, 2, Counter(), "the micro-batch"));
  const double p = GetDouble(attributes, "p", 0.5);
  if (!(p >= 0 && p < 1)) return Refuse("p is ", p, "; give the share of elements to drop, in [0, 1)");
  return std::vector<TensorType>{operands[0]};
}

// The same elements of the gradient; what counts micro-batches stands anew in the backward, so that it is not saved.
Value* DropoutGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  if (operand != 0) return nullptr;
  Value* micro_batch = node.operands[2];
  if (micro_batch->producer != nullptr && micro_batch->producer->op == "micro_batch_index") {
    micro_batch = builder.Emit("micro_batch_index", {});
  }
  return builder.Emit("dropout", {gradient, node.operands[1], micro_batch}, node.attributes);
}

absl::StatusOr<std::vector<TensorType>> IndexShape(OperandTypes, const AttributeMap&) {
  return std::vector<TensorType>{Counter()};
}

}  // namespace

std::vector<OpDef> DropoutOps() {
  const OpTraits elementwise{/*elementwise=*/true};
  const std::vector<AttributeSpec> dropout = {
      {"p", AttributeType::kDouble}, {"seed", AttributeType::kInt}, {"site", AttributeType::kInt}};
  return {
      {"dropout", 3, 3, dropout, DropoutShape, DropoutGradient, FlopsOfResult, elementwise},
      {"micro_batch_index", 0, 0, {}, IndexShape},
  };
}

}  // namespace pipeloom::op_rules
