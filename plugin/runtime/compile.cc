#include "plugin/runtime/compile.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/file_io.h"
#include "kernels/base/status_macros.h"
#include "passes/channel_edges.h"
#include "passes/ir/op_table.h"
#include "passes/ir/verify.h"
#include "passes/pass_pipeline.h"
#include "passes/pipeline_parallel.h"
#include "passes/schedule/lower_communication.h"
#include "passes/schedule/schedule_table.h"
#include "passes/schedule/verify_schedule.h"
#include "plugin/runtime/build_rank_program.h"

namespace pipeloom {
namespace {

TensorType WholeBatch(TensorType type, std::optional<int> axis, int micro_batches) {
  if (axis) type.shape[static_cast<size_t>(*axis)] *= micro_batches;
  return type;
}

// Fills in what the step graph takes and gives, before the passes take it apart.
absl::Status ReadInterface(const Module& module, StepInterface* step, CompiledProgram* program) {
  if (module.graphs.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("the module has ", module.graphs.size(), " graphs; give one"));
  }
  const Graph& graph = *module.graphs[0];
  const int count = module.config.micro_batches;
  for (const Value* input : graph.inputs()) {
    if (input->batch_axis.value_or(0) != 0) {
      return absl::UnimplementedError(absl::StrCat("input %", input->name, " has batch axis ", *input->batch_axis,
                                                   "; micro-batches are cut along axis 0 only, transpose it first"));
    }
    program->inputs.push_back(WholeBatch(input->type, input->batch_axis, count));
    step->inputs.push_back(input->name);
  }
  for (const Output& output : graph.outputs) {
    if (output.reduce.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("output %", output.value->name, " does not say how micro-batches ",
                                                     "make one; give it reduce=\"sum\", \"mean\" or \"concat\""));
    }
    const std::optional<int> axis = output.reduce == "concat" ? std::optional<int>(0) : std::nullopt;
    if (axis && output.value->type.rank() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("output %", output.value->name, " is a scalar, which cannot be concatenated; use sum or mean"));
    }
    program->outputs.push_back(WholeBatch(output.value->type, axis, count));
    step->outputs.push_back(program->outputs.back());
  }
  return absl::OkStatus();
}

absl::StatusOr<Schedule> MakeLoweredSchedule(const Module& module) {
  const PipelineConfig& config = module.config;
  ASSIGN_OR_RETURN(const Schedule compute,
                   MakeSchedule(config.schedule, config.stages, config.micro_batches, config.chunks_per_rank));
  const std::vector<CommunicationEdge> edges = ChannelEdges(module);
  ASSIGN_OR_RETURN(Schedule lowered, LowerCommunication(compute, edges));
  RETURN_IF_ERROR(VerifySchedule(lowered, edges, CreditsOfChannels(module)));
  return lowered;
}

std::vector<std::string> Untrained(const Module& module) {
  absl::flat_hash_set<std::string> written;
  std::vector<std::string> untrained;
  for (const auto& graph : module.graphs) {
    if (graph->part != Part::kUpdate) continue;
    for (const auto& node : graph->nodes()) written.insert(node->operands[0]->parameter);
  }
  for (const auto& graph : module.graphs) {
    if (graph->part != Part::kForward) continue;
    for (const Value* parameter : graph->parameters()) {
      if (parameter->trainable && written.insert(parameter->parameter).second) {
        untrained.push_back(parameter->parameter);
      }
    }
  }
  return untrained;
}

// A schedule that trains needs a graph that trains, and the other way round.
absl::Status CheckScheduleFits(const Module& module) {
  const bool graph_trains = module.graphs[0]->update.has_value() ||
                            std::any_of(module.graphs[0]->nodes().begin(), module.graphs[0]->nodes().end(),
                                        [](const auto& node) { return node->info.phase == Phase::kBackward; });
  ASSIGN_OR_RETURN(const Schedule schedule, MakeSchedule(module.config.schedule, module.config.stages,
                                                         module.config.micro_batches, /*chunks_per_rank=*/1));
  if (Trains(schedule) == graph_trains) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("schedule ", module.config.schedule, graph_trains ? " only runs forward" : " trains",
                   ", but graph @", module.graphs[0]->name(), graph_trains ? " has an update" : " has no update",
                   "; choose ", ScheduleChoices(graph_trains)));
}

}  // namespace

absl::StatusOr<CompiledProgram> Compile(Module module, const CompileOptions& options) {
  RETURN_IF_ERROR(Verify(module));
  CompiledProgram program;
  StepInterface step;
  RETURN_IF_ERROR(ReadInterface(module, &step, &program));
  RETURN_IF_ERROR(CheckScheduleFits(module));
  const bool trains = module.graphs[0]->update.has_value();
  PassPipeline passes(PipelineParallelPasses());
  RETURN_IF_ERROR(passes.Run(module, options.dump_dir, [&](const Pass& pass, const Module& split) {
    // Before fuse, which draws cells into others, and before there is anything that no cell asked for.
    if (pass.name() == "split_stages") program.stages = SummarizeStages(split);
  }));
  program.stage_of_cell = module.config.stage_of_cell;
  ASSIGN_OR_RETURN(program.schedule, MakeLoweredSchedule(module));
  if (trains) program.untrained = Untrained(module);
  std::string ranks_text;
  for (int rank = 0; rank < program.schedule.ranks(); ++rank) {
    program.ranks.push_back(BuildRankProgram(module, program.schedule, step, RankId(rank)));
    if (!options.dump_dir.empty()) ranks_text += RankProgramToString(program.ranks.back());
  }
  if (!options.dump_dir.empty()) {
    RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(options.dump_dir, "/rank_programs.txt"), {ranks_text}));
  }
  return program;
}

}  // namespace pipeloom
