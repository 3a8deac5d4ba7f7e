#include "passes/copy_step_nodes.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "passes/ir/op_table.h"

namespace pipeloom {
namespace {

using NodeSet = absl::flat_hash_set<const Node*>;

// The update nodes that depend on no gradient and on no parameter that one of a stage reads or writes.
NodeSet NodesWithoutStage(const Graph& graph) {
  absl::flat_hash_set<const Value*> placed;  // what belongs to the stages of the nodes that make, read or write it
  for (const auto& node : graph.nodes()) {
    if (node->info.phase == Phase::kUpdate) continue;
    placed.insert(node->operands.begin(), node->operands.end());
    placed.insert(node->results.begin(), node->results.end());
  }
  for (const auto& constant : graph.constants()) placed.erase(constant);
  NodeSet without;
  for (const auto& node : graph.nodes()) {
    if (node->info.phase == Phase::kUpdate && node->op != "step_output") without.insert(node.get());
  }
  // A node that turns out to have a stage gives it to what it makes and writes, and so to further nodes.
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& node : graph.nodes()) {
      if (!without.contains(node.get())) continue;
      const bool has_stage = std::any_of(node->operands.begin(), node->operands.end(), [&](const Value* operand) {
        return operand->kind == Value::Kind::kInput || placed.contains(operand);
      });
      if (!has_stage) continue;
      without.erase(node.get());
      placed.insert(node->results.begin(), node->results.end());
      for (const Value* written : WrittenOperands(*node)) placed.insert(written);
      changed = true;
    }
  }
  return without;
}

// Gives the stages their copies, in the order of the graph.
class Copier {
 public:
  Copier(Graph& graph, int stages) : graph_(graph), without_stage_(NodesWithoutStage(graph)), needed_(stages) {}

  bool Run() {
    if (without_stage_.empty()) return false;
    FindNeeded();
    std::vector<std::unique_ptr<Node>> nodes = std::move(graph_.mutable_nodes());
    graph_.mutable_nodes().clear();
    std::vector<absl::flat_hash_map<const Value*, Value*>> copy_of(needed_.size());
    bool changed = false;
    for (std::unique_ptr<Node>& node : nodes) {
      const auto own = static_cast<size_t>(node->info.stage->value());
      const bool copied = without_stage_.contains(node.get());
      const Node& original = *node;
      if (!copied) {
        for (Value*& operand : node->operands) {
          const auto copy = copy_of[own].find(operand);
          if (copy != copy_of[own].end()) operand = copy->second;
        }
      }
      graph_.mutable_nodes().push_back(std::move(node));
      if (!copied) continue;
      for (size_t stage = 0; stage < needed_.size(); ++stage) {
        if (stage == own || !needed_[stage].contains(&original)) continue;
        Copy(original, StageId(static_cast<int>(stage)), copy_of[stage]);
        changed = true;
      }
    }
    return changed;
  }

 private:
  // From the last node up: what a needed node reads is needed.
  void FindNeeded() {
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      const Node& node = **it;
      const bool writes = !WrittenOperands(node).empty();
      for (size_t stage = 0; stage < needed_.size(); ++stage) {
        const bool without = without_stage_.contains(&node);
        if (without && writes) needed_[stage].insert(&node);
        const bool reads =
            without ? needed_[stage].contains(&node) : node.info.stage == StageId(static_cast<int>(stage));
        if (!reads) continue;
        for (const Value* operand : node.operands) {
          if (without_stage_.contains(operand->producer)) needed_[stage].insert(operand->producer);
        }
      }
    }
  }

  void Copy(const Node& original, StageId stage, absl::flat_hash_map<const Value*, Value*>& copy_of) {
    std::vector<Value*> operands;
    for (Value* operand : original.operands) {
      const auto copy = copy_of.find(operand);
      operands.push_back(copy == copy_of.end() ? operand : copy->second);
    }
    NodeInfo info = original.info;
    info.stage = stage;
    info.chunk.reset();
    std::vector<TensorType> types;
    for (const Value* result : original.results) types.push_back(result->type);
    const absl::string_view hint = original.results.empty() ? "" : absl::string_view(original.results[0]->name);
    const Node* copy = graph_.AddTypedNode(original.op, std::move(operands), original.attributes, info, types, hint);
    for (size_t i = 0; i < original.results.size(); ++i) copy_of[original.results[i]] = copy->results[i];
  }

  Graph& graph_;
  const NodeSet without_stage_;
  std::vector<NodeSet> needed_;  // by stage
};

}  // namespace

absl::StatusOr<bool> CopyStepNodes::Run(Module& module) const {
  bool changed = false;
  for (auto& graph : module.graphs) changed |= Copier(*graph, module.config.stages).Run();
  return changed;
}

}  // namespace pipeloom
