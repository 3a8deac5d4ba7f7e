#include "passes/insert_micro_batches.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_table.h"
#include "passes/parts.h"

namespace pipeloom {
namespace {

// The node info of what is inserted beside `node`.
NodeInfo InfoOf(const Module& module, const Graph& graph, Phase phase, Rate rate, absl::string_view cell) {
  return {std::string(cell), module.config.StageOf(*graph.chunk), phase, rate};
}

bool IsJoined(const Value& value) { return value.kind == Value::Kind::kSaved || value.kind == Value::Kind::kBoundary; }

bool ReadsWholeStep(const Node& node) {
  const OpDef* op = FindOp(node.op);
  return op != nullptr && op->traits.whole_step;
}

// Tells what reads a whole step how many micro-batches that is.
absl::StatusOr<bool> CountForWholeStep(Graph& graph, int count) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    if (!ReadsWholeStep(*node)) continue;
    for (const Value* operand : node->operands) {
      if (operand->kind == Value::Kind::kInput) continue;
      return absl::InvalidArgumentError(absl::StrCat(node->op, " of cell ", node->info.cell, " reads %", operand->name,
                                                     ", which is no input of the step; only those are known whole"));
    }
    Attribute& known = node->attributes["count"];
    changed = changed || known != Attribute(int64_t{count});
    known = int64_t{count};
  }
  return changed;
}

absl::StatusOr<bool> SliceInputs(const Module& module, Graph& graph) {
  const int count = module.config.micro_batches;
  bool changed = false;
  const std::vector<Value*> inputs = graph.inputs();
  size_t at = 0;
  for (Value* input : inputs) {
    if (input->kind != Value::Kind::kInput || !input->batch_axis) continue;
    const int axis = *input->batch_axis;
    const int64_t extent = input->type.shape[static_cast<size_t>(axis)];
    if (extent > std::numeric_limits<int64_t>::max() / count) {
      return absl::InvalidArgumentError(absl::StrCat("input %", input->name, ": ", count, " times extent ", extent,
                                                     " of batch axis ", axis, " overflows; give fewer micro-batches"));
    }
    input->type.shape[static_cast<size_t>(axis)] *= count;
    const Phase phase = graph.part == Part::kForward ? Phase::kForward : Phase::kBackward;
    ASSIGN_OR_RETURN(
        Node * slice,
        graph.AddNode("micro_batch_slice", {input}, {{"axis", int64_t{axis}}, {"count", int64_t{count}}},
                      InfoOf(module, graph, phase, Rate::kMicro, ""), absl::StrCat(input->name, ".micro"), at++));
    for (const auto& node : graph.nodes()) {
      if (node.get() == slice || ReadsWholeStep(*node)) continue;
      std::replace(node->operands.begin(), node->operands.end(), input, slice->results[0]);
    }
    changed = true;
  }
  return changed;
}

// Gives out what is made once a step: values of R, and gradients, whose micro-batches AccumulateGradients adds up for
// whatever R reads.
absl::Status GiveOutStepValues(Module& module, Graph& graph) {
  std::vector<Output> kept;
  for (const Output& output : graph.outputs) {
    const bool gradient = IsAccumulated(output);
    if (output.reduce != kOnceOutput && !gradient) {
      kept.push_back(output);
      continue;
    }
    Graph& reduce_part = gradient ? FindOrAddPart(module, *graph.chunk, Part::kReduce) : graph;
    Value* result = reduce_part.Find(output.value->name);
    if (result == nullptr) {
      result = reduce_part.AddJoined(Value::Kind::kSaved, output.value->name, output.value->type);
      kept.push_back({output.value, "", 0});
    }
    RETURN_IF_ERROR(reduce_part
                        .AddNode("step_output", {result}, {{"index", int64_t{output.index}}},
                                 InfoOf(module, graph, Phase::kUpdate, Rate::kStep, output.value->producer->info.cell))
                        .status());
  }
  graph.outputs = std::move(kept);
  return absl::OkStatus();
}

// Merges the graph's outputs of the step.
absl::StatusOr<bool> MergeOutputs(Module& module, Graph& graph) {
  const int count = module.config.micro_batches;
  std::vector<Output> kept;
  std::vector<Output> merged;
  for (const Output& output : graph.outputs) (output.reduce.empty() ? kept : merged).push_back(output);
  graph.outputs = kept;
  for (const Output& output : merged) {
    const std::string& cell = output.value->producer->info.cell;
    const std::string reduce = output.reduce == "concat" ? "concat" : "sum";
    const absl::StatusOr<Node*> merge = graph.AddNode(
        "micro_batch_merge", {output.value}, {{"reduce", reduce}, {"count", int64_t{count}}},
        InfoOf(module, graph, Phase::kForward, Rate::kMicro, cell), absl::StrCat(output.value->name, ".step"));
    if (!merge.ok()) {
      return Annotate(merge.status(),
                      absl::StrCat("output %", output.value->name, " of cell ", cell, ", reduced by ", output.reduce));
    }
    const Value* merged_value = (*merge)->results[0];
    graph.outputs.push_back({(*merge)->results[0], "", 0});
    Graph& reduce_part = FindOrAddPart(module, *graph.chunk, Part::kReduce);
    Value* result = reduce_part.AddJoined(Value::Kind::kSaved, merged_value->name, merged_value->type);
    const NodeInfo info = InfoOf(module, graph, Phase::kUpdate, Rate::kStep, cell);
    if (output.reduce == "mean") {
      Value* share = reduce_part.AddConstant("share", TensorType{DType::kFloat32, {}},
                                             {static_cast<double>(1.0f / static_cast<float>(count))});
      ASSIGN_OR_RETURN(Node * mean, reduce_part.AddNode("mul", {result, share}, {}, info,
                                                        absl::StrCat(output.value->name, ".mean")));
      result = mean->results[0];
    }
    RETURN_IF_ERROR(reduce_part.AddNode("step_output", {result}, {{"index", int64_t{output.index}}}, info).status());
  }
  return !merged.empty();
}

// The node that makes the value; that of the body where a call gives it.
const Node& MakerOf(const Module& module, const Value& value) {
  const Node& producer = *value.producer;
  if (producer.op != kCall) return producer;
  const auto result = std::find(producer.results.begin(), producer.results.end(), &value) - producer.results.begin();
  return *BodyOf(module, producer)->outputs[static_cast<size_t>(result)].value->producer;
}

// Accumulates what `graph` makes once a micro-batch and an R or U graph reads once a step.
absl::StatusOr<bool> AccumulateGradients(Module& module, Graph& graph) {
  bool changed = false;
  std::vector<Output> outputs;
  for (const Output& output : graph.outputs) {
    if (output.value->producer->info.rate == Rate::kStep) {
      outputs.push_back(output);
      continue;
    }
    std::vector<std::pair<Graph*, Value*>> readers;
    bool read_by_micro_batch = !output.reduce.empty();
    for (auto& other : module.graphs) {
      Value* joined = other->Find(output.value->name);
      if (joined == nullptr || !IsJoined(*joined)) continue;
      if (other->part == Part::kReduce || other->part == Part::kUpdate) {
        readers.push_back({other.get(), joined});
      } else {
        read_by_micro_batch = true;
      }
    }
    if (readers.empty() || read_by_micro_batch) outputs.push_back(output);
    if (readers.empty()) continue;
    AttributeMap attributes = {{"count", int64_t{module.config.micro_batches}}};
    const Node& producer = MakerOf(module, *output.value);
    if (auto group = producer.attributes.find("group"); group != producer.attributes.end()) attributes.insert(*group);
    ASSIGN_OR_RETURN(Node * accumulate, graph.AddNode("grad_accumulate", {output.value}, attributes,
                                                      InfoOf(module, graph, Phase::kBackward, Rate::kMicro,
                                                             output.value->producer->info.cell),
                                                      absl::StrCat(output.value->name, ".acc")));
    for (auto& [reader, joined] : readers) reader->Rename(joined, accumulate->results[0]->name);
    outputs.push_back({accumulate->results[0], "", 0});
    changed = true;
  }
  graph.outputs = std::move(outputs);
  return changed;
}

// What a graph that runs once a step reads from others is made once a step.
absl::Status CheckReadOnceAStep(const Module& module, const Graph& reader) {
  for (const Value* input : reader.inputs()) {
    if (!IsJoined(*input)) continue;
    for (const auto& graph : module.graphs) {
      for (const Output& output : graph->outputs) {
        if (output.value->name != input->name) continue;
        const Node& producer = *output.value->producer;
        if (producer.info.rate == Rate::kStep || producer.op == "grad_accumulate" ||
            producer.op == "micro_batch_merge") {
          continue;
        }
        return absl::InternalError(absl::StrCat("%", input->name, " of ", producer.op,
                                                " is another one in each micro-batch, and is read once a step"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> InsertMicroBatches::Run(Module& module) const {
  const int count = module.config.micro_batches;
  if (count < 1) return absl::InvalidArgumentError(absl::StrCat("micro_batches is ", count, "; give 1 or more"));
  bool changed = false;
  std::vector<Graph*> graphs;  // the R graphs that are added need no visit
  for (auto& graph : module.graphs) graphs.push_back(graph.get());
  for (Graph* graph : graphs) {
    if (!graph->part) return absl::FailedPreconditionError("the module is not split; run split_stages first");
    ASSIGN_OR_RETURN(const bool counted, CountForWholeStep(*graph, count));
    ASSIGN_OR_RETURN(const bool sliced, SliceInputs(module, *graph));
    RETURN_IF_ERROR(GiveOutStepValues(module, *graph));
    ASSIGN_OR_RETURN(const bool accumulated, AccumulateGradients(module, *graph));
    ASSIGN_OR_RETURN(const bool merged, MergeOutputs(module, *graph));
    changed = changed || counted || sliced || accumulated || merged;
  }
  return changed;
}

absl::Status InsertMicroBatches::CheckAfter(const Module& module) const {
  for (const auto& graph : module.graphs) {
    if (graph->part == Part::kReduce || graph->part == Part::kUpdate)
      RETURN_IF_ERROR(CheckReadOnceAStep(module, *graph));
    for (const Output& output : graph->outputs) {
      if (!output.reduce.empty()) {
        return absl::InternalError(absl::StrCat("output %", output.value->name, " is not merged"));
      }
    }
    for (const Value* input : graph->inputs()) {
      if (input->kind != Value::Kind::kInput || !input->batch_axis) continue;
      for (const auto& node : graph->nodes()) {
        const bool reads = std::count(node->operands.begin(), node->operands.end(), input) > 0;
        if (reads && node->op != "micro_batch_slice" && !ReadsWholeStep(*node)) {
          return absl::InternalError(absl::StrCat("%", input->name, " is read whole by ", node->op));
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
