#include "passes/differentiate.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/graph_builder.h"
#include "passes/ir/op_table.h"
#include "passes/reverse_sweep.h"

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

ValueSet WrittenValues(const Graph& graph) {
  ValueSet written;
  for (const auto& node : graph.nodes()) {
    for (const Value* operand : WrittenOperands(*node)) written.insert(operand);
  }
  return written;
}

absl::Status SeedLoss(const Output& loss, int micro_batches, const ValueSet& active, Graph& graph,
                      ReverseSweep& sweep) {
  if (!active.contains(loss.value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("no trainable parameter reaches the loss %", loss.value->name, "; there is nothing to train"));
  }
  const float seed = loss.reduce == "mean" ? 1.0f / static_cast<float>(micro_batches) : 1.0f;
  sweep.Seed(loss.value, graph.AddConstant("seed", TensorType{DType::kFloat32, {}}, {static_cast<double>(seed)}));
  return absl::OkStatus();
}

// A node that gives out the gradient of `parameter` where the graph has it among its outputs.
absl::Status GiveOut(const Value* parameter, Value* gradient, const NodeInfo& info, Graph& graph) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (graph.outputs[i].value != parameter || graph.outputs[i].reduce != kGradientOutput) continue;
    RETURN_IF_ERROR(graph.AddNode("step_output", {gradient}, {{"index", static_cast<int64_t>(i)}}, info).status());
  }
  return absl::OkStatus();
}

// The same, of zeros, for parameters that the loss does not depend on; then no gradient is an output any more.
absl::Status GiveOutZeros(const ReverseSweep& sweep, Graph& graph) {
  GraphBuilder builder(graph, {"", {}, Phase::kUpdate, Rate::kStep});
  for (const Output& output : graph.outputs) {
    if (output.reduce != kGradientOutput || !sweep.ContributionsTo(output.value).empty()) continue;
    const Shape& shape = output.value->type.shape;
    Value* zeros = builder.Emit("broadcast_to", {builder.Scalar(0)},
                                {{"shape", std::vector<int64_t>(shape.begin(), shape.end())}});
    RETURN_IF_ERROR(GiveOut(output.value, zeros, builder.info(), graph));
  }
  const auto is_gradient = [](const Output& output) { return output.reduce == kGradientOutput; };
  graph.outputs.erase(std::remove_if(graph.outputs.begin(), graph.outputs.end(), is_gradient), graph.outputs.end());
  return absl::OkStatus();
}

// Adds the update nodes, in the order of the parameters.
absl::Status AddUpdates(Graph& graph, const ReverseSweep& sweep) {
  const UpdateRule rule = *graph.update;
  const std::vector<Value*> parameters = graph.parameters();  // states are added while we go
  for (Value* parameter : parameters) {
    const std::vector<Value*>& uses = sweep.ContributionsTo(parameter);
    if (uses.empty()) continue;
    NodeInfo info{sweep.FirstUseCell(parameter), {}, Phase::kUpdate, Rate::kStep};
    GraphBuilder builder(graph, info);
    std::vector<Value*> operands = {parameter, ReverseSweep::SumInProgramOrder(builder, uses, parameter)};
    RETURN_IF_ERROR(GiveOut(parameter, operands[1], info, graph));
    for (const UpdateState& state : UpdateStates(rule.op, rule.attributes)) {
      const TensorType type = state.scalar ? TensorType{DType::kFloat32, {}} : parameter->type;
      const std::string name = absl::StrCat(state.prefix, ".", parameter->parameter);
      if (graph.FindParameter(name) != nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " has the name of the optimizer's state of ",
                                                       parameter->parameter, "; rename it"));
      }
      operands.push_back(graph.AddParameter(absl::StrCat(state.prefix, ".", parameter->name), name, type,
                                            /*trainable=*/false));
    }
    RETURN_IF_ERROR(graph.AddNode(rule.op, std::move(operands), rule.attributes, info).status());
  }
  graph.update.reset();
  return GiveOutZeros(sweep, graph);
}

absl::Status AddBackward(Module& module, Graph& graph) {
  ASSIGN_OR_RETURN(const Output* loss, FindLoss(graph));
  ValueSet trained;
  for (const Value* parameter : graph.parameters()) {
    if (parameter->trainable) trained.insert(parameter);
  }
  BlockGradients blocks(module);
  const ValueSet active = ReachedValues(graph, std::move(trained), blocks);
  ReverseSweep sweep(graph, active, blocks);
  RETURN_IF_ERROR(SeedLoss(*loss, module.config.micro_batches, active, graph, sweep));
  RETURN_IF_ERROR(sweep.Run());
  return AddUpdates(graph, sweep);
}

absl::Status CheckNoGradientIsAskedFor(const Graph& graph) {
  for (const Output& output : graph.outputs) {
    if (output.reduce != kGradientOutput) continue;
    return absl::InvalidArgumentError(absl::StrCat("graph @", graph.name(), " gives out the gradient of parameter ",
                                                   output.value->parameter,
                                                   ", but has no update rule; gradients are made for one"));
  }
  return absl::OkStatus();
}

// The operands through which a call's results on the way read.
void AddOperandsOnTheWay(const Module& module, const Node& node, ValueSet& on_the_way) {
  if (node.op != kCall) {
    on_the_way.insert(node.operands.begin(), node.operands.end());
    return;
  }
  const Graph& body = *BodyOf(module, node);
  ValueSet within;
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (on_the_way.contains(node.results[i])) within.insert(body.outputs[i].value);
  }
  for (auto inner = body.nodes().rbegin(); inner != body.nodes().rend(); ++inner) {
    if ((*inner)->results.empty() || !within.contains((*inner)->results[0])) continue;
    within.insert((*inner)->operands.begin(), (*inner)->operands.end());
  }
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const size_t parameter = i - body.inputs().size();
    const Value* formal = i < body.inputs().size() ? body.inputs()[i] : body.parameters()[parameter];
    if (within.contains(formal)) on_the_way.insert(node.operands[i]);
  }
}

}  // namespace

absl::StatusOr<bool> Differentiate::Run(Module& module) const {
  bool changed = false;
  for (auto& graph : module.graphs) {
    if (!graph->update) {
      RETURN_IF_ERROR(CheckNoGradientIsAskedFor(*graph));
      continue;
    }
    RETURN_IF_ERROR(AddBackward(module, *graph));
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
      const bool reaches = std::any_of((*node)->results.begin(), (*node)->results.end(),
                                       [&](const Value* result) { return on_the_way.contains(result); });
      if (reaches) AddOperandsOnTheWay(module, **node, on_the_way);
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
