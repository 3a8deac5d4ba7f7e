#include "passes/split_stages.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_table.h"
#include "passes/weight_chain.h"

namespace pipeloom {
namespace {

using NodeSet = absl::flat_hash_set<const Node*>;

bool UsedByUpdateOnly(const UseMap& uses, const Value* value) {
  const std::vector<Use>& all = UsesOf(uses, value);
  return !all.empty() &&
         std::all_of(all.begin(), all.end(), [](const Use& use) { return use.node->info.phase == Phase::kUpdate; });
}

NodeSet WeightNodes(const Module& module, const Graph& graph) {
  const UseMap uses = ComputeUses(graph);
  NodeSet weight_nodes;
  for (const auto& node : graph.nodes()) {
    if (node->op == kCall && BodyOf(module, *node)->part == Part::kBackwardWeight) weight_nodes.insert(node.get());
    if (node->info.phase != Phase::kBackward || node->results.size() != 1) continue;
    if (!UsedByUpdateOnly(uses, node->results[0])) continue;
    for (const Node* link : WeightChain(node.get(), uses)) weight_nodes.insert(link);
  }
  return weight_nodes;
}

Part PartOf(const Node& node, const NodeSet& weight_nodes) {
  switch (node.info.phase) {
    case Phase::kForward:
      return Part::kForward;
    case Phase::kBackward:
      return weight_nodes.contains(&node) ? Part::kBackwardWeight : Part::kBackwardInput;
    case Phase::kUpdate:
      break;
  }
  const OpDef* op = FindOp(node.op);
  return op != nullptr && !op->writes.empty() ? Part::kUpdate : Part::kReduce;
}

// Moves the nodes of one step graph into graphs of their own.
class Splitter {
 public:
  Splitter(const Module& module, const Graph& step) : step_(step), weight_nodes_(WeightNodes(module, step)) {}

  std::vector<std::unique_ptr<Graph>> Run(int chunks) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (Part part : kParts) AddPart(ChunkId(chunk), part);
    }
    AddOutputs();
    return std::move(graphs_);
  }

 private:
  void AddPart(ChunkId chunk, Part part) {
    auto graph = std::make_unique<Graph>(step_.name());
    graph->chunk = chunk;
    graph->part = part;
    absl::flat_hash_map<const Value*, Value*> mapped;
    for (const auto& node : step_.nodes()) {
      if (ChunkOf(node->info) != chunk || PartOf(*node, weight_nodes_) != part) continue;
      std::vector<Value*> operands;
      for (const Value* operand : node->operands) {
        auto [entry, inserted] = mapped.emplace(operand, nullptr);
        if (inserted) entry->second = Import(*operand, *graph);
        operands.push_back(entry->second);
      }
      std::vector<TensorType> types;
      for (const Value* result : node->results) types.push_back(result->type);
      NodeInfo info = node->info;
      info.chunk.reset();
      const Node* copy = graph->AddTypedNode(node->op, std::move(operands), node->attributes, info, types);
      for (size_t i = 0; i < node->results.size(); ++i) {
        graph->Rename(copy->results[i], node->results[i]->name);
        mapped[node->results[i]] = copy->results[i];
      }
    }
    if (!graph->nodes().empty()) graphs_.push_back(std::move(graph));
  }

  // A value of the step graph as the part's graph sees it.
  Value* Import(const Value& value, Graph& graph) {
    switch (value.kind) {
      case Value::Kind::kInput:
        return graph.AddInput(value.name, value.type, value.batch_axis);
      case Value::Kind::kParameter:
        return graph.AddParameter(value.name, value.parameter, value.type, value.trainable);
      case Value::Kind::kConstant:
        return graph.AddConstant(value.name, value.type, value.elements);
      default:
        break;
    }
    joined_.insert(value.name);
    const bool same_chunk = ChunkOf(value.producer->info) == *graph.chunk;
    return graph.AddJoined(same_chunk ? Value::Kind::kSaved : Value::Kind::kBoundary, value.name, value.type);
  }

  // Every graph gives out what another one reads, and what the step graph gives out.
  void AddOutputs() {
    for (auto& graph : graphs_) {
      for (const auto& node : graph->nodes()) {
        for (Value* result : node->results) {
          if (joined_.contains(result->name)) graph->outputs.push_back({result, "", 0});
        }
      }
      for (size_t i = 0; i < step_.outputs.size(); ++i) {
        Value* value = graph->Find(step_.outputs[i].value->name);
        if (value == nullptr || value->kind != Value::Kind::kResult) continue;
        graph->outputs.push_back({value, step_.outputs[i].reduce, static_cast<int>(i)});
      }
    }
  }

  const Graph& step_;
  const NodeSet weight_nodes_;
  absl::flat_hash_set<std::string> joined_;
  std::vector<std::unique_ptr<Graph>> graphs_;
};

}  // namespace

absl::StatusOr<bool> SplitStages::Run(Module& module) const {
  if (module.graphs.size() != 1 || module.graphs[0]->chunk) {
    return absl::FailedPreconditionError(
        absl::StrCat("the module has ", module.graphs.size(), " graphs; one step graph that is not split is needed"));
  }
  for (const Output& output : module.graphs[0]->outputs) {
    if (output.value->kind == Value::Kind::kResult) continue;
    return absl::UnimplementedError(absl::StrCat("output %", output.value->name, " of graph @",
                                                 module.graphs[0]->name(),
                                                 " is no node's result; pass it through copy"));
  }
  for (const auto& node : module.graphs[0]->nodes()) {
    if (!node->info.stage) {
      return absl::FailedPreconditionError(
          absl::StrCat("node ", node->op, " of cell ", node->info.cell, " has no stage; run assign_stages first"));
    }
  }
  module.graphs = Splitter(module, *module.graphs[0]).Run(module.config.chunks());
  return true;
}

absl::Status SplitStages::CheckAfter(const Module& module) const {
  for (const auto& graph : module.graphs) {
    for (const auto& node : graph->nodes()) {
      if (*node->info.stage == module.config.StageOf(*graph->chunk)) continue;
      return absl::InternalError(absl::StrCat("node ", node->op, " of stage ", node->info.stage->value(),
                                              " stands in chunk ", graph->chunk->value()));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
