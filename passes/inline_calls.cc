#include "passes/inline_calls.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace pipeloom {
namespace {

// Inlines calls of one graph.
class Inliner {
 public:
  Inliner(const Module& module, Graph& graph) : module_(module), graph_(graph) {}

  void Run(const absl::flat_hash_set<const Node*>& calls) {
    const size_t old_nodes = graph_.nodes().size();
    std::vector<size_t> end_of_copies(old_nodes, old_nodes);
    for (size_t i = 0; i < old_nodes; ++i) {
      if (calls.contains(graph_.nodes()[i].get())) CopyBody(*graph_.nodes()[i]);
      end_of_copies[i] = graph_.nodes().size();
    }
    auto& nodes = graph_.mutable_nodes();
    std::vector<std::unique_ptr<Node>> old = std::move(nodes);
    nodes.clear();
    size_t copy = old_nodes;
    for (size_t i = 0; i < old_nodes; ++i) {
      for (; copy < end_of_copies[i]; ++copy) nodes.push_back(std::move(old[copy]));
      nodes.push_back(std::move(old[i]));
    }
    for (const auto& node : nodes) {
      for (Value*& operand : node->operands) Replace(operand);
    }
    for (Output& output : graph_.outputs) Replace(output.value);
    std::vector<std::pair<Value*, std::string>> names;
    for (const auto& node : nodes) {
      if (!calls.contains(node.get())) continue;
      for (const Value* result : node->results) names.emplace_back(replacement_.at(result), result->name);
    }
    graph_.RemoveNodes({calls.begin(), calls.end()});
    for (const auto& [value, name] : names) graph_.Rename(value, name);
  }

 private:
  void Replace(Value*& value) const {
    if (const auto found = replacement_.find(value); found != replacement_.end()) value = found->second;
  }

  // Appends the nodes of the call's body.
  void CopyBody(const Node& call) {
    const Graph& body = *BodyOf(module_, call);
    absl::flat_hash_map<const Value*, Value*> copy;
    size_t operand = 0;
    for (const Value* input : body.inputs()) copy[input] = call.operands[operand++];
    for (const Value* parameter : body.parameters()) copy[parameter] = call.operands[operand++];
    for (const Value* constant : body.constants()) {
      Value*& value = constants_[constant];
      if (value == nullptr) value = graph_.AddConstant(constant->name, constant->type, constant->elements);
      copy[constant] = value;
    }
    for (const auto& node : body.nodes()) {
      std::vector<Value*> operands;
      for (const Value* value : node->operands) operands.push_back(copy.at(value));
      std::vector<TensorType> types;
      for (const Value* result : node->results) types.push_back(result->type);
      NodeInfo info = node->info;
      info.cell = CellInCall(call, node->info.cell);
      info.stage = call.info.stage;
      const Node* added = graph_.AddTypedNode(node->op, std::move(operands), node->attributes, std::move(info), types);
      for (size_t i = 0; i < types.size(); ++i) {
        graph_.Rename(added->results[i], node->results[i]->name);
        copy[node->results[i]] = added->results[i];
      }
    }
    for (size_t i = 0; i < call.results.size(); ++i) replacement_[call.results[i]] = copy.at(body.outputs[i].value);
  }

  const Module& module_;
  Graph& graph_;
  absl::flat_hash_map<const Value*, Value*> constants_;    // of the graph, by that of the block
  absl::flat_hash_map<const Value*, Value*> replacement_;  // of the results of calls
};

}  // namespace

void InlineCalls(const Module& module, Graph& graph, const absl::flat_hash_set<const Node*>& calls) {
  Inliner(module, graph).Run(calls);
}

void RemoveUncalledBlocks(Module& module) {
  absl::flat_hash_set<const Graph*> called;
  for (const auto& graph : module.graphs) {
    for (const auto& node : graph->nodes()) {
      if (node->op == kCall) called.insert(BodyOf(module, *node));
    }
  }
  auto& blocks = module.blocks;
  blocks.erase(
      std::remove_if(blocks.begin(), blocks.end(), [&](const auto& block) { return !called.contains(block.get()); }),
      blocks.end());
}

}  // namespace pipeloom
