#include "passes/differentiate.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/graph_builder.h"
#include "passes/ir/op_table.h"

namespace pipeloom {
namespace {

using ValueSet = absl::flat_hash_set<const Value*>;

absl::StatusOr<const Output*> FindLoss(const Graph& graph) {
  const Output* loss = nullptr;
  for (const Output& output : graph.outputs) {
    if (output.reduce != "sum" && output.reduce != "mean") continue;
    if (output.value->type != TensorType{DType::kFloat32, {}}) continue;
    if (loss != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("graph @", graph.name(), " has two losses, %", loss->value->name,
                                                     " and %", output.value->name,
                                                     "; reduce one output only by sum or mean"));
    }
    loss = &output;
  }
  if (loss == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("graph @", graph.name(),
                                                   " has an update rule but no loss: no output is f32[] with "
                                                   "reduce=\"sum\" or reduce=\"mean\""));
  }
  return loss;
}

// Values that a trainable parameter reaches, the parameters included.
ValueSet ValuesFromTrainables(const Graph& graph) {
  ValueSet active;
  for (const Value* parameter : graph.parameters()) {
    if (parameter->trainable) active.insert(parameter);
  }
  for (const auto& node : graph.nodes()) {
    const bool reached = std::any_of(node->operands.begin(), node->operands.end(),
                                     [&](const Value* operand) { return active.contains(operand); });
    if (!reached) continue;
    for (const Value* result : node->results) {
      if (Info(result->type.dtype).floating) active.insert(result);
    }
  }
  return active;
}

ValueSet WrittenValues(const Graph& graph) {
  ValueSet written;
  for (const auto& node : graph.nodes()) {
    for (const Value* operand : WrittenOperands(*node)) written.insert(operand);
  }
  return written;
}

// One backward sweep over the forward nodes of a graph.
class ReverseSweep {
 public:
  ReverseSweep(Graph& graph, int micro_batches)
      : graph_(graph), micro_batches_(micro_batches), active_(ValuesFromTrainables(graph)) {}

  absl::Status Run() {
    ASSIGN_OR_RETURN(const Output* loss, FindLoss(graph_));
    if (!active_.contains(loss->value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("no trainable parameter reaches the loss %", loss->value->name, "; there is nothing to train"));
    }
    const float seed = loss->reduce == "mean" ? 1.0f / static_cast<float>(micro_batches_) : 1.0f;
    contributions_[loss->value].push_back(
        graph_.AddConstant("seed", TensorType{DType::kFloat32, {}}, {static_cast<double>(seed)}));
    std::vector<Node*> forward;
    for (const auto& node : graph_.nodes()) forward.push_back(node.get());
    for (auto node = forward.rbegin(); node != forward.rend(); ++node) RETURN_IF_ERROR(Visit(**node));
    return absl::OkStatus();
  }

  // Adds the update nodes, in the order of the parameters.
  absl::Status AddUpdates() {
    const UpdateRule rule = *graph_.update;
    const std::vector<Value*> parameters = graph_.parameters();  // states are added while we go
    for (Value* parameter : parameters) {
      auto uses = contributions_.find(parameter);
      if (uses == contributions_.end()) continue;
      NodeInfo info{first_use_cell_[parameter], {}, Phase::kUpdate, Rate::kStep};
      GraphBuilder builder(graph_, info);
      std::vector<Value*> operands = {parameter, SumInProgramOrder(builder, uses->second, parameter)};
      for (const UpdateState& state : UpdateStates(rule.op, rule.attributes)) {
        const TensorType type = state.scalar ? TensorType{DType::kFloat32, {}} : parameter->type;
        const std::string name = absl::StrCat(state.prefix, ".", parameter->parameter);
        if (graph_.FindParameter(name) != nullptr) {
          return absl::InvalidArgumentError(absl::StrCat(
              "parameter ", name, " has the name of the optimizer's state of ", parameter->parameter, "; rename it"));
        }
        operands.push_back(graph_.AddParameter(absl::StrCat(state.prefix, ".", parameter->name), name, type,
                                               /*trainable=*/false));
      }
      RETURN_IF_ERROR(graph_.AddNode(rule.op, std::move(operands), rule.attributes, info).status());
    }
    graph_.update.reset();
    return absl::OkStatus();
  }

 private:
  absl::Status Visit(const Node& node) {
    const auto result = std::find_if(node.results.begin(), node.results.end(),
                                     [&](const Value* value) { return contributions_.contains(value); });
    if (result == node.results.end()) return absl::OkStatus();
    GraphBuilder builder(graph_, {node.info.cell, node.info.stage, Phase::kBackward, Rate::kMicro});
    Value* gradient = SumInProgramOrder(builder, contributions_[*result], *result);
    const OpDef* op = FindOp(node.op);
    for (int i = static_cast<int>(node.operands.size()) - 1; i >= 0; --i) {
      Value* operand = node.operands[static_cast<size_t>(i)];
      if (!active_.contains(operand)) continue;
      if (op == nullptr || op->gradient == nullptr) {
        return absl::UnimplementedError(absl::StrCat(
            "op ", node.op, " (cell ", node.info.cell, ", %", (*result)->name, ") has no gradient, but a trainable ",
            "parameter reaches the loss through it; freeze what is before it"));
      }
      const size_t nodes_before = graph_.nodes().size();
      Value* contribution = op->gradient(builder, node, i, gradient);
      if (contribution == nullptr) continue;
      // A parameter's gradient is summed over micro-batches, so it is what a node makes in each of them.
      if (contribution->kind == Value::Kind::kConstant && operand->kind == Value::Kind::kParameter) {
        contribution = builder.Emit("copy", {contribution});
      }
      if (graph_.nodes().size() > nodes_before) graph_.Rename(contribution, absl::StrCat("d.", operand->name));
      contributions_[operand].push_back(contribution);
      first_use_cell_[operand] = node.info.cell;  // the sweep goes up, so the first use is the last to write
    }
    return absl::OkStatus();
  }

  // Contributions are found from the last use to the first; they are added from the first to the last.
  static Value* SumInProgramOrder(GraphBuilder& builder, const std::vector<Value*>& contributions, const Value* of) {
    Value* sum = contributions.back();
    for (auto next = contributions.rbegin() + 1; next != contributions.rend(); ++next) {
      sum = builder.Emit("add", {sum, *next}, {}, absl::StrCat("d.", of->name, ".sum"));
    }
    return sum;
  }

  Graph& graph_;
  const int micro_batches_;
  const ValueSet active_;
  absl::flat_hash_map<const Value*, std::vector<Value*>> contributions_;
  absl::flat_hash_map<const Value*, std::string> first_use_cell_;
};

}  // namespace

absl::StatusOr<bool> Differentiate::Run(Module& module) const {
  bool changed = false;
  for (auto& graph : module.graphs) {
    if (!graph->update) continue;
    ReverseSweep sweep(*graph, module.config.micro_batches);
    RETURN_IF_ERROR(sweep.Run());
    RETURN_IF_ERROR(sweep.AddUpdates());
    changed = true;
  }
  return changed;
}

absl::Status Differentiate::CheckAfter(const Module& module) const {
  for (const auto& graph : module.graphs) {
    if (graph->update) return absl::InternalError(absl::StrCat("graph @", graph->name(), " still has an update rule"));
    const ValueSet written = WrittenValues(*graph);
    if (written.empty()) continue;
    const absl::StatusOr<const Output*> loss = FindLoss(*graph);
    if (!loss.ok()) continue;  // no graph of this pass: it came with its updates
    ValueSet on_the_way = {(*loss)->value};
    for (auto node = graph->nodes().rbegin(); node != graph->nodes().rend(); ++node) {
      if ((*node)->results.empty() || !on_the_way.contains((*node)->results[0])) continue;
      on_the_way.insert((*node)->operands.begin(), (*node)->operands.end());
    }
    for (const Value* parameter : graph->parameters()) {
      const bool differentiable = parameter->trainable && Info(parameter->type.dtype).floating;
      if (differentiable && on_the_way.contains(parameter) && !written.contains(parameter)) {
        return absl::InternalError(
            absl::StrCat("parameter ", parameter->parameter, " reaches the loss and is not updated"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
