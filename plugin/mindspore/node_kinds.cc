#include "plugin/mindspore/node_kinds.h"

#include <algorithm>
#include <string>

#include "ir/scope.h"

namespace pipeloom::ms {
namespace {

using Kinds = std::unordered_map<const host::AnfNode*, Kind>;

// Autodiff's marks of a node that it made.
bool IsMarkedBackward(const host::CNodePtr& node) {
  if (node->HasPrimalAttr("forward_unique_id")) return true;
  return node->scope() != nullptr && node->scope()->name().rfind("Gradients/", 0) == 0;
}

bool IsStructure(const std::string& op) {
  return op == "MakeTuple" || op == "TupleGetItem" || op == "Depend" || op == "UpdateState" || op == "Return" ||
         op == "Load";
}

Kind KindOf(const host::CNodePtr& node, const Kinds& kinds, bool has_slices) {
  const std::string op = OpName(node);
  if (op == kSlice) return Kind::kForward;
  if (op == kMergeGrad) return Kind::kBackward;
  bool forward = false;
  bool backward = false;
  bool step = false;
  for (size_t i = 1; i < node->size(); ++i) {
    const host::AnfNodePtr& input = node->input(i);
    if (IsEffectOrder(input)) continue;
    if (const auto parameter = input->cast<host::ParameterPtr>(); parameter != nullptr) {
      forward = forward || (!has_slices && !parameter->has_default());
      continue;
    }
    const auto known = kinds.find(input.get());
    if (known == kinds.end()) continue;
    forward = forward || known->second == Kind::kForward;
    backward = backward || known->second == Kind::kBackward;
    step = step || known->second == Kind::kStep;
  }
  if (op == kMerge || op == "Return") return Kind::kStep;
  const bool marked = IsMarkedBackward(node);
  if (step && marked && !IsStructure(op) && (forward || backward)) {
    throw Refused(Describe(node) + " is a gradient of a micro-batch and reads what is made once a step; compute it " +
                  "outside the pipeline's network");
  }
  if (step) return Kind::kStep;
  if (backward) return marked || IsStructure(op) ? Kind::kBackward : Kind::kStep;
  if (forward) return marked ? Kind::kBackward : Kind::kForward;
  return Kind::kFree;
}

using Users = std::unordered_map<const host::AnfNode*, std::vector<const host::CNode*>>;

Users FindUsers(const std::vector<host::AnfNodePtr>& order) {
  Users users;
  for (const host::AnfNodePtr& node : order) {
    const auto cnode = node->cast<host::CNodePtr>();
    if (cnode == nullptr || IsEffectOrder(node)) continue;
    for (size_t i = 1; i < cnode->size(); ++i) users[cnode->input(i).get()].push_back(cnode.get());
  }
  return users;
}

// From the last node up: sums of gradients that nothing of a micro-batch reads, and tuples of them, belong to the step.
void MoveSumsToStep(const std::vector<host::AnfNodePtr>& order, Kinds* kinds) {
  const Users users = FindUsers(order);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const auto node = (*it)->cast<host::CNodePtr>();
    if (node == nullptr || kinds->at(node.get()) != Kind::kBackward) continue;
    const std::string op = OpName(node);
    if (op != "AddN" && op != "Add" && !IsStructure(op)) continue;
    const auto readers = users.find(node.get());
    if (readers == users.end()) continue;
    const bool only_step = std::all_of(readers->second.begin(), readers->second.end(),
                                       [&](const host::CNode* reader) { return kinds->at(reader) == Kind::kStep; });
    if (only_step) kinds->at(node.get()) = Kind::kStep;
  }
}

}  // namespace

Kinds FindKinds(const std::vector<host::AnfNodePtr>& order) {
  const bool has_slices =
      std::any_of(order.begin(), order.end(), [](const host::AnfNodePtr& node) { return OpName(node) == kSlice; });
  Kinds kinds;
  for (const host::AnfNodePtr& node : order) {
    if (const auto cnode = node->cast<host::CNodePtr>()) kinds.emplace(node.get(), KindOf(cnode, kinds, has_slices));
  }
  MoveSumsToStep(order, &kinds);
  return kinds;
}

}  // namespace pipeloom::ms
