#include "plugin/cells/build_module.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "plugin/cells/build_context.h"
#include "plugin/cells/losses.h"

namespace pipeloom {
namespace {

// The divisor of `batch` that is nearest to `wanted`, the smaller of two.
int64_t NearestDivisor(int64_t batch, int64_t wanted) {
  int64_t nearest = 1;
  for (int64_t divisor = 2; divisor <= batch; ++divisor) {
    if (batch % divisor == 0 && std::llabs(divisor - wanted) < std::llabs(nearest - wanted)) nearest = divisor;
  }
  return nearest;
}

absl::StatusOr<std::vector<TensorType>> MicroBatchTypes(std::vector<TensorType> batch, int micro_batches) {
  if (micro_batches < 1) {
    return absl::InvalidArgumentError(absl::StrCat("micro_batches is ", micro_batches, "; give at least 1"));
  }
  if (batch.empty()) return absl::InvalidArgumentError("a step needs at least one input");
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].rank() == 0 || batch[i].shape[0] != batch[0].shape[0] || batch[i].shape[0] < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", i, " is ", batch[i].ToString(),
          "; axis 0 is the batch: at least 1, and the same in all inputs (input 0 is ", batch[0].ToString(), ")"));
    }
  }
  const int64_t rows = batch[0].shape[0];
  if (rows % micro_batches != 0) {
    return absl::InvalidArgumentError(absl::StrCat("batch ", rows, " does not divide into ", micro_batches,
                                                   " micro-batches; give a multiple of ", micro_batches,
                                                   " or --micro_batches=", NearestDivisor(rows, micro_batches)));
  }
  for (TensorType& type : batch) type.shape[0] = rows / micro_batches;
  return batch;
}

struct Network {
  Cell* cell;
  std::string reduce;
  std::vector<ParameterPtr> trained;
  int micro_batches;
  const StageConfig& stage_config;
  BuildPurpose purpose = {};
};

absl::StatusOr<Module> BuildModule(const Network& network, const CellTree& tree, const std::vector<TensorType>& batch,
                                   PipelineConfig config) {
  Module module;
  config.micro_batches = network.micro_batches;
  ASSIGN_OR_RETURN(auto given, StagesOfCells(tree, network.stage_config));
  if (!given.empty()) config.stage_of_cell = std::move(given);
  config.deal_cells = config.deal_cells && config.stage_of_cell.empty();
  module.config = std::move(config);
  ASSIGN_OR_RETURN(const std::vector<TensorType> types, MicroBatchTypes(batch, network.micro_batches));

  auto graph = std::make_unique<Graph>("step");
  BuildContext context(tree, network.trained, *graph, network.purpose);
  std::vector<Var> inputs;
  for (size_t i = 0; i < types.size(); ++i) {
    inputs.push_back(context.AddInput(absl::StrCat("input", i), types[i], /*batch_axis=*/0));
  }
  std::vector<Var> outputs = context.Call(*network.cell, inputs);
  RETURN_IF_ERROR(context.status());
  // What the step gives out is made by a node of some stage: an input or a parameter is copied.
  for (Var& output : outputs) {
    if (output.value()->kind != Value::Kind::kResult) output = context.Emit("copy", {output}, {});
  }
  for (const Var& output : outputs) graph->outputs.push_back({output.value(), network.reduce});
  OutlineRegions(module, *graph, context.lazy_inline(), /*fewest_calls=*/1);
  module.graphs.push_back(std::move(graph));
  return module;
}

absl::StatusOr<Module> BuildForward(const Network& network, const CellTree& tree, const std::vector<TensorType>& batch,
                                    PipelineConfig config) {
  config.schedule = "forward";
  ASSIGN_OR_RETURN(Module module, BuildModule(network, tree, batch, std::move(config)));
  for (const Output& output : module.graphs[0]->outputs) {
    if (output.value->type.rank() == 0) {
      return absl::InvalidArgumentError(absl::StrCat("output %", output.value->name, " of the network is a scalar, ",
                                                     "which has no batch axis to join micro-batches"));
    }
  }
  return module;
}

absl::Status CheckTrained(const CellTree& tree, const Optimizer& optimizer) {
  RETURN_IF_ERROR(optimizer.Validate());
  for (size_t i = 0; i < optimizer.parameters().size(); ++i) {
    bool known = false;
    for (const CellTree::NamedParameter& named : tree.parameters()) {
      known = known || named.parameter == optimizer.parameters()[i];
    }
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", i, " of the optimizer belongs to no cell of the network; give it the network's ",
                       "TrainableParams() after the parameters have been tied"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Module> BuildTrainingModule(const Pipeline& pipeline, const CellTree& tree, const Optimizer& optimizer,
                                           const std::vector<TensorType>& batch, PipelineConfig config) {
  if (pipeline.loss_reduction != "mean" && pipeline.loss_reduction != "sum") {
    return absl::InvalidArgumentError(
        absl::StrCat("loss_reduction is '", pipeline.loss_reduction, "'; choose one of mean, sum"));
  }
  RETURN_IF_ERROR(CheckTrained(tree, optimizer));
  const Network network{&tree.root(),           pipeline.loss_reduction,
                        optimizer.parameters(), pipeline.micro_size,
                        pipeline.stage_config,  {/*trains=*/true, pipeline.loss_reduction == "mean"}};
  ASSIGN_OR_RETURN(Module module, BuildModule(network, tree, batch, std::move(config)));
  Graph& graph = *module.graphs[0];
  if (graph.outputs.size() != 1 || graph.outputs[0].value->type != TensorType{DType::kFloat32, {}}) {
    return absl::InvalidArgumentError(
        absl::StrCat("a network with its loss returns one f32[] a micro-batch; this one returns ", graph.outputs.size(),
                     " values, the first is ", graph.outputs[0].value->type.ToString(), "; wrap it in a WithLossCell"));
  }
  graph.update = optimizer.rule();
  return module;
}

absl::StatusOr<Module> BuildInferenceModule(const Pipeline& pipeline, const CellTree& tree,
                                            const std::vector<TensorType>& batch, PipelineConfig config) {
  const absl::StatusOr<Cell*> backbone = tree.Find(kBackbone);
  if (!backbone.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("to predict, the network is looked for in cell '", kBackbone,
                                                   "', where WithLossCell has it; ", backbone.status().message()));
  }
  return BuildForward({*backbone, "concat", {}, pipeline.micro_size, pipeline.stage_config}, tree, batch,
                      std::move(config));
}

absl::StatusOr<Module> BuildInferenceModule(const PipelineCellInference& pipeline, const CellTree& tree,
                                            const std::vector<TensorType>& batch, PipelineConfig config) {
  return BuildForward({&tree.root(), "concat", {}, pipeline.micro_batch_num, pipeline.stage_config}, tree, batch,
                      std::move(config));
}

std::vector<std::string> PrintsWithoutStage(const Module& module) {
  const PipelineConfig& config = module.config;
  std::vector<std::string> cells;
  if (config.stages == 1 || config.deal_cells) return cells;
  const auto has_stage = [&](const std::string& cell) {
    return std::any_of(config.stage_of_cell.begin(), config.stage_of_cell.end(), [&](const auto& entry) {
      return entry.first.empty() || absl::StartsWith(absl::StrCat(cell, "."), absl::StrCat(entry.first, "."));
    });
  };
  const auto add = [&](const Node& node, const std::string& cell) {
    const bool known = std::find(cells.begin(), cells.end(), cell) != cells.end();
    if (node.op == "print" && !known && !has_stage(cell)) cells.push_back(cell);
  };
  for (const auto& node : module.graphs[0]->nodes()) {
    add(*node, node->info.cell);
    if (node->op != kCall) continue;
    for (const auto& inner : BodyOf(module, *node)->nodes()) add(*inner, CellInCall(*node, inner->info.cell));
  }
  return cells;
}

}  // namespace pipeloom
