#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

// (weight, gradient, states...), as UpdateStates lists them.
absl::StatusOr<std::vector<TensorType>> CheckUpdate(absl::string_view op, OperandTypes operands,
                                                    const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kFloat32));
  RETURN_IF_ERROR(WantType(operands, 1, operands[0], "the gradient"));
  const std::vector<UpdateState> states = UpdateStates(op, attributes);
  if (operands.size() != 2 + states.size()) {
    std::string wanted;
    for (const UpdateState& state : states) absl::StrAppend(&wanted, ", ", state.prefix);
    return Refuse(AttributesToString(attributes), " wants ", 2 + states.size(), " operands (weight, gradient", wanted,
                  "), not ", operands.size(), "; the weight is ", operands[0].ToString());
  }
  for (int i = 0; i < static_cast<int>(states.size()); ++i) {
    const TensorType wanted = states[i].scalar ? TensorType{DType::kFloat32, {}} : operands[0];
    RETURN_IF_ERROR(WantType(operands, 2 + i, wanted, states[i].prefix));
  }
  return std::vector<TensorType>();
}

absl::StatusOr<std::vector<TensorType>> SgdShape(OperandTypes operands, const AttributeMap& attributes) {
  if (GetBool(attributes, "nesterov", false) && GetDouble(attributes, "momentum", 0.0) == 0.0) {
    return Refuse("nesterov on weight ", operands[0].ToString(), " wants a momentum that is not 0");
  }
  return CheckUpdate("sgd", operands, attributes);
}

absl::StatusOr<std::vector<TensorType>> AdamShape(OperandTypes operands, const AttributeMap& attributes) {
  return CheckUpdate("adam", operands, attributes);
}

absl::StatusOr<std::vector<TensorType>> AdamWShape(OperandTypes operands, const AttributeMap& attributes) {
  return CheckUpdate("adamw", operands, attributes);
}

// Operands `from` on: what a step of the update takes beside tensors, one f32 each.
absl::Status WantFactors(OperandTypes operands, int from, const std::vector<absl::string_view>& names) {
  for (int i = from; i < static_cast<int>(operands.size()); ++i) {
    if (operands[i].dtype == DType::kFloat32 && operands[i].num_elements() == 1) continue;
    return Refuse(Describe(operands, i), ", ", names[i - from], ", is not one f32");
  }
  return absl::OkStatus();
}

// (weight, gradient, states of the weight's type..., factors...)
absl::StatusOr<std::vector<TensorType>> CheckApply(OperandTypes operands, const std::vector<absl::string_view>& states,
                                                   const std::vector<absl::string_view>& factors) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kFloat32));
  RETURN_IF_ERROR(WantType(operands, 1, operands[0], "the gradient"));
  int at = 2;
  for (absl::string_view state : states) RETURN_IF_ERROR(WantType(operands, at++, operands[0], state));
  RETURN_IF_ERROR(WantFactors(operands, at, factors));
  return std::vector<TensorType>();
}

absl::StatusOr<std::vector<TensorType>> ApplySgdShape(OperandTypes operands, const AttributeMap&) {
  return CheckApply(operands, {"accum", "fresh"}, {"lr", "momentum"});
}

absl::StatusOr<std::vector<TensorType>> ApplyMomentumShape(OperandTypes operands, const AttributeMap&) {
  return CheckApply(operands, {"accum"}, {"lr", "momentum"});
}

absl::StatusOr<std::vector<TensorType>> ApplyAdamShape(OperandTypes operands, const AttributeMap&) {
  return CheckApply(operands, {"moment1", "moment2"}, {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "eps"});
}

absl::StatusOr<std::vector<TensorType>> ApplyAdamWShape(OperandTypes operands, const AttributeMap&) {
  return CheckApply(operands, {"moment1", "moment2"}, {"lr", "beta1", "beta2", "eps", "weight_decay"});
}

// (parameter, value)
absl::StatusOr<std::vector<TensorType>> AssignShape(OperandTypes operands, const AttributeMap&) {
  RETURN_IF_ERROR(WantType(operands, 1, operands[0], "the value"));
  return std::vector<TensorType>();
}

absl::StatusOr<std::vector<TensorType>> AssignAddShape(OperandTypes operands, const AttributeMap& attributes) {
  if (operands[0].dtype == DType::kBool) return Refuse(Describe(operands, 0), " is no number");
  return AssignShape(operands, attributes);
}

// Products and sums an element, square root and quotients included.
int64_t SgdFlops(const Node& node) { return (node.operands.size() == 2 ? 2 : 4) * FlopsOfOperand(node); }
int64_t ApplySgdFlops(const Node& node) { return 4 * FlopsOfOperand(node); }
int64_t AdamFlops(const Node& node) { return 12 * FlopsOfOperand(node); }

}  // namespace

std::vector<OpDef> UpdateOps() {
  const AttributeSpec lr{"lr", AttributeType::kDouble, /*required=*/true};
  const AttributeSpec weight_decay{"weight_decay", AttributeType::kDouble};
  const AttributeSpec nesterov{"nesterov", AttributeType::kBool};
  OpTraits rule;
  rule.update_rule = true;
  const std::vector<AttributeSpec> adam = {lr,
                                           {"beta1", AttributeType::kDouble},
                                           {"beta2", AttributeType::kDouble},
                                           {"eps", AttributeType::kDouble},
                                           weight_decay};
  return {
      {"sgd",
       2,
       3,
       {lr, {"momentum", AttributeType::kDouble}, nesterov, weight_decay},
       SgdShape,
       nullptr,
       SgdFlops,
       rule,
       {0, 2}},
      {"adam", 5, 5, adam, AdamShape, nullptr, AdamFlops, rule, {0, 2, 3, 4}},
      {"adamw", 5, 5, adam, AdamWShape, nullptr, AdamFlops, rule, {0, 2, 3, 4}},
      {"apply_sgd",
       6,
       6,
       {{"dampening", AttributeType::kDouble}, nesterov, weight_decay},
       ApplySgdShape,
       nullptr,
       ApplySgdFlops,
       {},
       {0, 2, 3}},
      {"apply_momentum", 5, 5, {}, ApplyMomentumShape, nullptr, ApplySgdFlops, {}, {0, 2}},
      {"apply_adam", 10, 10, {nesterov}, ApplyAdamShape, nullptr, AdamFlops, {}, {0, 2, 3}},
      {"apply_adamw", 9, 9, {}, ApplyAdamWShape, nullptr, AdamFlops, {}, {0, 2, 3}},
      {"assign", 2, 2, {}, AssignShape, nullptr, nullptr, {}, {0}},
      {"assign_add", 2, 2, {}, AssignAddShape, nullptr, FlopsOfOperand, {}, {0}},
  };
}

}  // namespace pipeloom::op_rules
