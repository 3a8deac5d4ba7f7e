#include <utility>

#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

absl::Status WantReduction(const AttributeMap& attributes) {
  return WantOneOf(attributes, "reduction", "mean", {"mean", "sum"});
}

DType LabelType(const TensorType& labels) { return labels.dtype == DType::kInt64 ? DType::kInt64 : DType::kInt32; }

// Logits and labels stand at operands `at` and `at` + 1, and after them what the sum is divided by, if it is given.
absl::Status CheckLogitsAndLabels(OperandTypes operands, const AttributeMap& attributes, int at) {
  RETURN_IF_ERROR(WantDType(operands, at, DType::kFloat32));
  RETURN_IF_ERROR(WantRank(operands, at, 2));
  const TensorType labels{LabelType(operands[at + 1]), {operands[at].shape[0]}};
  RETURN_IF_ERROR(WantType(operands, at + 1, labels, "one label for each row of the logits"));
  if (static_cast<int>(operands.size()) > at + 2) {
    RETURN_IF_ERROR(WantType(operands, at + 2, TensorType{DType::kFloat32, {}}, "the divisor"));
    if (GetString(attributes, "reduction", "mean") != "mean") {
      return Refuse(Describe(operands, at + 2), ", the divisor, is given to a sum; give it to a mean");
    }
  }
  return WantReduction(attributes);
}

// Of labels of the whole step.
absl::StatusOr<std::vector<TensorType>> LabelsPerMicroBatchShape(OperandTypes operands,
                                                                 const AttributeMap& attributes) {
  if (operands[0].dtype != LabelType(operands[0])) {
    return Refuse(Describe(operands, 0), ", the labels, is not of dtype i32 or i64");
  }
  RETURN_IF_ERROR(WantAtLeast(attributes, "count", 1, 1));
  return std::vector<TensorType>{{DType::kFloat32, {}}};
}

absl::Status CheckPrediction(OperandTypes operands, const AttributeMap& attributes, int at) {
  RETURN_IF_ERROR(WantDType(operands, at, DType::kFloat32));
  RETURN_IF_ERROR(WantType(operands, at + 1, operands[at], "the target"));
  return WantReduction(attributes);
}

absl::Status CheckLossGradient(OperandTypes operands) {
  return WantType(operands, 0, TensorType{DType::kFloat32, {}}, "the gradient of the loss");
}

std::vector<TensorType> Scalar() { return {TensorType{DType::kFloat32, {}}}; }

absl::StatusOr<std::vector<TensorType>> CrossEntropyShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(CheckLogitsAndLabels(operands, attributes, 0));
  return Scalar();
}

absl::StatusOr<std::vector<TensorType>> CrossEntropyGradShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(CheckLossGradient(operands));
  RETURN_IF_ERROR(CheckLogitsAndLabels(operands, attributes, 1));
  return std::vector<TensorType>{operands[1]};
}

absl::StatusOr<std::vector<TensorType>> MseShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(CheckPrediction(operands, attributes, 0));
  return Scalar();
}

absl::StatusOr<std::vector<TensorType>> MseGradShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(CheckLossGradient(operands));
  RETURN_IF_ERROR(CheckPrediction(operands, attributes, 1));
  return std::vector<TensorType>{operands[1]};
}

Value* CrossEntropyGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  if (operand == 1) return nullptr;
  if (operand == 2) {  // -loss / divisor
    Value* scaled = builder.Emit("mul", {gradient, node.results[0]});
    return builder.Emit("neg", {builder.Emit("div", {scaled, node.operands[2]})});
  }
  std::vector<Value*> operands = {gradient};
  operands.insert(operands.end(), node.operands.begin(), node.operands.end());
  return builder.Emit("softmax_cross_entropy_grad", std::move(operands), node.attributes);
}

Value* MseGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  Value* of_x = builder.Emit("mse_grad", {gradient, node.operands[0], node.operands[1]}, node.attributes);
  return operand == 0 ? of_x : builder.Emit("neg", {of_x});
}

// A maximum, a difference, an exponential, a sum and a quotient for each logit.
int64_t CrossEntropyFlops(const Node& node) { return 5 * FlopsOfOperand(node); }
int64_t CrossEntropyGradFlops(const Node& node) { return 5 * FlopsOfResult(node); }
// A difference, a square and a sum, or a difference and two products, for each
// element.
int64_t MseFlops(const Node& node) { return 3 * node.operands.back()->type.num_elements(); }

}  // namespace

std::vector<OpDef> LossOps() {
  const std::vector<AttributeSpec> mse = {{"reduction", AttributeType::kString}};
  const std::vector<AttributeSpec> cross_entropy = {{"reduction", AttributeType::kString},
                                                    {"ignore_index", AttributeType::kInt}};
  const std::vector<AttributeSpec> labels = {{"ignore_index", AttributeType::kInt}, {"count", AttributeType::kInt}};
  OpTraits whole_step;
  whole_step.whole_step = true;
  return {
      {"softmax_cross_entropy", 2, 3, cross_entropy, CrossEntropyShape, CrossEntropyGradient, CrossEntropyFlops},
      {"softmax_cross_entropy_grad", 3, 4, cross_entropy, CrossEntropyGradShape, nullptr, CrossEntropyGradFlops},
      {"labels_per_micro_batch", 1, 1, labels, LabelsPerMicroBatchShape, nullptr, nullptr, whole_step},
      {"mse", 2, 2, mse, MseShape, MseGradient, MseFlops},
      {"mse_grad", 3, 3, mse, MseGradShape, nullptr, MseFlops},
  };
}

}  // namespace pipeloom::op_rules
