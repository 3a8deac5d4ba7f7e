#include "passes/copy_parameter_nodes.h"

#include <algorithm>

namespace pipeloom {
namespace {

size_t PositionOf(const Graph& graph, const Node* node) {
  const auto& nodes = graph.nodes();
  return static_cast<size_t>(std::find_if(nodes.begin(), nodes.end(), [&](const auto& n) { return n.get() == node; }) -
                             nodes.begin());
}

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
  for (auto& graph : module.graphs) {
    // From the last node up: a copied node makes a further use of its operands, which stand above it.
    std::vector<Node*> nodes;
    const absl::flat_hash_set<const Value*> parameter_only = ParameterOnlyResults(*graph);
    for (const auto& node : graph->nodes()) {
      if (node->results.size() == 1 && parameter_only.contains(node->results[0])) nodes.push_back(node.get());
    }
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const UseMap use_map = ComputeUses(*graph);
      const std::vector<Use> uses = UsesOf(use_map, (*node)->results[0]);
      for (size_t i = 1; i < uses.size(); ++i) {
        const Value* original = (*node)->results[0];
        const Node* copy = graph->AddTypedNode((*node)->op, (*node)->operands, (*node)->attributes, (*node)->info,
                                               {original->type}, original->name, PositionOf(*graph, uses[i].node));
        uses[i].node->operands[static_cast<size_t>(uses[i].operand)] = copy->results[0];
        changed = true;
      }
    }
  }
  return changed;
}

}  // namespace pipeloom
