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

// Products and sums an element, square root and quotients included.
int64_t SgdFlops(const Node& node) { return (node.operands.size() == 2 ? 2 : 4) * FlopsOfOperand(node); }
int64_t AdamFlops(const Node& node) { return 12 * FlopsOfOperand(node); }

}  // namespace

std::vector<OpDef> UpdateOps() {
  const AttributeSpec lr{"lr", AttributeType::kDouble, /*required=*/true};
  const AttributeSpec weight_decay{"weight_decay", AttributeType::kDouble};
  const std::vector<AttributeSpec> adam = {lr,
                                           {"beta1", AttributeType::kDouble},
                                           {"beta2", AttributeType::kDouble},
                                           {"eps", AttributeType::kDouble},
                                           weight_decay};
  return {
      {"sgd",
       2,
       3,
       {lr, {"momentum", AttributeType::kDouble}, {"nesterov", AttributeType::kBool}, weight_decay},
       SgdShape,
       nullptr,
       SgdFlops,
       {},
       {0, 2}},
      {"adam", 5, 5, adam, AdamShape, nullptr, AdamFlops, {}, {0, 2, 3, 4}},
      {"adamw", 5, 5, adam, AdamWShape, nullptr, AdamFlops, {}, {0, 2, 3, 4}},
  };
}

}  // namespace pipeloom::op_rules
