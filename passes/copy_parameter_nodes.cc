#include "passes/copy_parameter_nodes.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace pipeloom {
namespace {

// Walks one graph from its first node to its last. The first use of a node of parameters alone keeps it, each further
// one gets a copy in front of it, and copies of what that reads.
class Copier {
 public:
  explicit Copier(Graph& graph) : graph_(graph) {
    for (const Value* result : ParameterOnlyResults(graph)) {
      if (result->producer->results.size() == 1) name_.emplace(result, result->name);
    }
  }

  bool Run() {
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes) {
      CopyOperands(*node);
      order_.push_back(node);
    }
    const bool changed = order_.size() > nodes.size();
    if (changed) Reorder();
    return changed;
  }

 private:
  void CopyOperands(Node& user) {
    if (user.info.phase == Phase::kUpdate) return;  // has no gradient, and copy_step_nodes makes it where it is read
    for (Value*& operand : user.operands) {
      const auto name = name_.find(operand);
      if (name == name_.end() || used_.insert(operand).second) continue;
      const Node& original = *operand->producer;
      Node* copy = graph_.AddTypedNode(original.op, original.operands, original.attributes, original.info,
                                       {operand->type}, name->second);
      name_.emplace(copy->results[0], std::string(name->second));
      used_.insert(copy->results[0]);
      CopyOperands(*copy);
      order_.push_back(copy);
      operand = copy->results[0];
    }
  }

  // The copies stand at the end of the graph; they belong in front of their users.
  void Reorder() {
    absl::flat_hash_map<const Node*, std::unique_ptr<Node>> owned;
    for (std::unique_ptr<Node>& node : graph_.mutable_nodes()) {
      const Node* key = node.get();
      owned.emplace(key, std::move(node));
    }
    graph_.mutable_nodes().clear();
    for (const Node* node : order_) graph_.mutable_nodes().push_back(std::move(owned.at(node)));
  }

  Graph& graph_;
  absl::flat_hash_map<const Value*, std::string> name_;  // of the original of each result of parameters alone
  absl::flat_hash_set<const Value*> used_;
  std::vector<const Node*> order_;
};

}  // namespace

absl::flat_hash_set<const Value*> ParameterOnlyResults(const Graph& graph) {
  absl::flat_hash_set<const Value*> results;
  for (const auto& node : graph.nodes()) {
    if (node->operands.empty()) continue;
    const bool parameters_only = std::all_of(node->operands.begin(), node->operands.end(), [&](const Value* operand) {
      return IsParameterOrConstant(operand) || results.contains(operand);
    });
    if (parameters_only) results.insert(node->results.begin(), node->results.end());
  }
  return results;
}

absl::StatusOr<bool> CopyParameterNodes::Run(Module& module) const {
  bool changed = false;
  for (auto& block : module.blocks) changed |= Copier(*block).Run();
  for (auto& graph : module.graphs) changed |= Copier(*graph).Run();
  return changed;
}

}  // namespace pipeloom
