#include <vector>

#include "plugin/mindspore/op_families.h"

namespace pipeloom::ms {
namespace {

// (weight, gradient, lr, accum, momentum, stat)
Item Sgd(const OpImport& import) {
  Attributes attributes;
  const double dampening = FloatAttribute(import.node(), "dampening", 0);
  const double weight_decay = FloatAttribute(import.node(), "weight_decay", 0);
  if (dampening != 0) attributes["dampening"] = dampening;
  if (weight_decay != 0) attributes["weight_decay"] = weight_decay;
  if (BoolAttribute(import.node(), "nesterov", false)) attributes["nesterov"] = true;
  import.EmitMany("apply_sgd",
                  {import.TensorAt(0), import.TensorAt(1), import.TensorAt(3), import.TensorAt(5), import.TensorAt(2),
                   import.TensorAt(4)},
                  {}, attributes);
  return import.operand(0);
}

// (weight, accum, lr, gradient, momentum)
Item ApplyMomentum(const OpImport& import) {
  if (BoolAttribute(import.node(), "use_nesterov", false) || FloatAttribute(import.node(), "gradient_scale", 1) != 1) {
    throw Refused(Describe(import.node()) + " with use_nesterov or gradient_scale is not there yet");
  }
  import.EmitMany("apply_momentum",
                  {import.TensorAt(0), import.TensorAt(3), import.TensorAt(1), import.TensorAt(2), import.TensorAt(4)},
                  {});
  return import.operand(0);
}

// (weight, m, v, beta1_power, beta2_power, lr, beta1, beta2, eps, gradient)
Item Adam(const OpImport& import) {
  Attributes attributes;
  if (BoolAttribute(import.node(), "use_nesterov", false)) attributes["nesterov"] = true;
  std::vector<Tensor> operands = {import.TensorAt(0), import.TensorAt(9)};
  for (size_t i = 1; i < 9; ++i) operands.push_back(import.TensorAt(i));
  import.EmitMany("apply_adam", operands, {}, attributes);
  return Item::TupleOf({import.operand(0), import.operand(1), import.operand(2)});
}

// (weight, m, v, lr, beta1, beta2, eps, decay, gradient)
Item AdamWeightDecay(const OpImport& import) {
  std::vector<Tensor> operands = {import.TensorAt(0), import.TensorAt(8)};
  for (size_t i = 1; i < 8; ++i) operands.push_back(import.TensorAt(i));
  import.EmitMany("apply_adamw", operands, {});
  return Item::TupleOf({import.operand(0), import.operand(1), import.operand(2)});
}

Item Assign(const OpImport& import) {
  import.EmitMany("assign", {import.TensorAt(0), import.TensorAt(1)}, {});
  return import.operand(0);
}

Item AssignAdd(const OpImport& import) {
  import.EmitMany("assign_add", {import.TensorAt(0), import.TensorAt(1)}, {});
  return import.operand(0);
}

}  // namespace

void AddUpdateOps(Rewrites* rewrites) {
  rewrites->insert({
      {"Adam", Adam},
      {"AdamWeightDecay", AdamWeightDecay},
      {"ApplyMomentum", ApplyMomentum},
      {"Assign", Assign},
      {"AssignAdd", AssignAdd},
      {"SGD", Sgd},
  });
}

bool WritesParameter(const std::string& op) {
  static const Rewrites& updates = *[] {
    auto* rewrites = new Rewrites();
    AddUpdateOps(rewrites);
    return rewrites;
  }();
  return updates.count(op) > 0;
}

}  // namespace pipeloom::ms
