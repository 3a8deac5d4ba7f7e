#include "passes/weight_chain.h"

#include "passes/ir/op_table.h"

namespace pipeloom {

std::vector<const Node*> WeightChain(const Node* last, const UseMap& uses) {
  std::vector<const Node*> chain;
  for (const Node* node = last; node != nullptr;) {
    chain.push_back(node);
    const OpDef* op = FindOp(node->op);
    if (op != nullptr && op->traits.contracts) return chain;
    const Value* only = nullptr;
    int read = 0;
    for (const Value* operand : node->operands) {
      if (IsParameterOrConstant(operand)) continue;
      only = operand;
      ++read;
    }
    const bool goes_on = read == 1 && only->producer != nullptr && only->producer->info.phase == Phase::kBackward &&
                         UsesOf(uses, only).size() == 1;
    node = goes_on ? only->producer : nullptr;
  }
  return {last};
}

}  // namespace pipeloom
