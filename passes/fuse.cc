#include "passes/fuse.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

// A multiply and what its epilogue takes in, in program order; steps[i] is the epilogue step that nodes[i + 1] becomes.
struct Chain {
  std::vector<Node*> nodes;
  std::vector<std::string> steps;
};

// The operand of an add that is not `value`, which the add reads once.
Value* OtherOperand(const Node& add, const Value* value) { return add.operands[add.operands[0] == value ? 1 : 0]; }

// The activation step that the node is; "" for none.
std::string ActivationStep(const Node& node) {
  if (node.op == "relu" || node.op == "tanh" || node.op == "sigmoid") return node.op;
  if (node.op == "gelu") return GetBool(node.attributes, "approximate", true) ? "gelu_tanh" : "gelu_erf";
  return "";
}

// Finds the chains of one graph. A node belongs to one chain at most: an add of two products goes to the first.
class ChainFinder {
 public:
  explicit ChainFinder(const Graph& graph) : uses_(ComputeUses(graph)) {
    for (const Output& output : graph.outputs) outputs_.insert(output.value);
  }

  Chain From(Node* matmul) {
    Chain chain{{matmul}, {}};
    bool takes_more = true;
    while (takes_more) {
      Node* next = OnlyReader(*chain.nodes.back());
      const std::string step = next == nullptr ? "" : StepOf(*next, chain);
      if (step.empty()) break;
      takes_more = ActivationStep(*next).empty();
      chain.nodes.push_back(next);
      chain.steps.push_back(step);
      claimed_.insert(next);
    }
    return chain;
  }

 private:
  // The node that alone reads the node's result, at the same place and time; nullptr where there is none.
  Node* OnlyReader(const Node& node) const {
    const std::vector<Use>& readers = UsesOf(uses_, node.results[0]);
    if (readers.size() != 1 || outputs_.contains(node.results[0])) return nullptr;
    Node* reader = readers[0].node;
    const bool together = reader->info.phase == node.info.phase && reader->info.rate == node.info.rate &&
                          reader->info.stage == node.info.stage;
    return together && !claimed_.contains(reader) ? reader : nullptr;
  }

  // The step that `next` is after the chain so far; "" where it cannot follow.
  static std::string StepOf(const Node& next, const Chain& chain) {
    const Value* value = chain.nodes.back()->results[0];
    if (next.op != "add") return ActivationStep(next);
    const Value* other = OtherOperand(next, value);
    const auto has = [&](absl::string_view step) {
      return std::find(chain.steps.begin(), chain.steps.end(), step) != chain.steps.end();
    };
    if (has("residual")) return "";
    if (other->type == value->type) return "residual";
    const bool along_columns = other->type == TensorType{value->type.dtype, {value->type.shape[1]}};
    return along_columns && !has("bias") ? "bias" : "";
  }

  const UseMap uses_;
  absl::flat_hash_set<const Value*> outputs_;
  absl::flat_hash_set<const Node*> claimed_;
};

// A chain and the node that stands for it.
struct Fused {
  const Chain* chain;
  Node* node;
};

// Appends the node; the graph still has the chain too.
absl::StatusOr<Fused> AddFused(Graph& graph, const Chain& chain) {
  const Node& matmul = *chain.nodes[0];
  std::vector<Value*> operands = matmul.operands;
  for (size_t i = 0; i < chain.steps.size(); ++i) {
    const Node& node = *chain.nodes[i + 1];
    if (node.op == "add") operands.push_back(OtherOperand(node, chain.nodes[i]->results[0]));
  }
  AttributeMap attributes = matmul.attributes;
  attributes["epilogue"] = absl::StrJoin(chain.steps, "+");
  ASSIGN_OR_RETURN(Node * fused, graph.AddNode("matmul", std::move(operands), std::move(attributes), matmul.info,
                                               chain.nodes.back()->results[0]->name));
  return Fused{&chain, fused};
}

// Puts each fused node, at the end of the graph so far, in the place of the last node of its chain.
void Replace(Graph& graph, const std::vector<Fused>& all) {
  absl::flat_hash_map<const Value*, Value*> replacement;
  absl::flat_hash_map<const Node*, std::unique_ptr<Node>> node_of_last;
  std::vector<const Node*> dead;
  auto& nodes = graph.mutable_nodes();
  const size_t old_nodes = nodes.size() - all.size();
  for (size_t i = 0; i < all.size(); ++i) {
    const Chain& chain = *all[i].chain;
    replacement[chain.nodes.back()->results[0]] = all[i].node->results[0];
    node_of_last[chain.nodes.back()] = std::move(nodes[old_nodes + i]);
    dead.insert(dead.end(), chain.nodes.begin(), chain.nodes.end());
  }
  std::vector<std::unique_ptr<Node>> ordered;
  for (size_t i = 0; i < old_nodes; ++i) {
    if (auto fused = node_of_last.find(nodes[i].get()); fused != node_of_last.end()) {
      ordered.push_back(std::move(fused->second));
    }
    ordered.push_back(std::move(nodes[i]));
  }
  nodes = std::move(ordered);
  const auto replace = [&](Value*& value) {
    if (const auto found = replacement.find(value); found != replacement.end()) value = found->second;
  };
  for (const auto& node : nodes) std::for_each(node->operands.begin(), node->operands.end(), replace);
  for (Output& output : graph.outputs) replace(output.value);
  std::vector<std::string> names;
  for (const Fused& fused : all) names.push_back(fused.chain->nodes.back()->results[0]->name);
  graph.RemoveNodes(dead);
  for (size_t i = 0; i < all.size(); ++i) graph.Rename(all[i].node->results[0], names[i]);
}

bool TakesEpilogue(const Node& node) {
  return node.op == "matmul" && node.operands.size() == 2 && GetString(node.attributes, "epilogue", "").empty() &&
         GetInt(node.attributes, "group", 1) == 1;
}

absl::StatusOr<bool> FuseGraph(Graph& graph) {
  ChainFinder finder(graph);
  std::vector<Chain> chains;
  for (const auto& node : graph.nodes()) {
    if (TakesEpilogue(*node)) chains.push_back(finder.From(node.get()));
  }
  std::vector<Fused> fused;
  for (const Chain& chain : chains) {
    if (chain.steps.empty()) continue;
    ASSIGN_OR_RETURN(fused.emplace_back(), AddFused(graph, chain));
  }
  if (!fused.empty()) Replace(graph, fused);
  return !fused.empty();
}

}  // namespace

absl::StatusOr<bool> Fuse::Run(Module& module) const {
  bool changed = false;
  for (auto* graphs : {&module.blocks, &module.graphs}) {
    for (auto& graph : *graphs) {
      ASSIGN_OR_RETURN(const bool fused, FuseGraph(*graph));
      changed |= fused;
    }
  }
  return changed;
}

}  // namespace pipeloom
