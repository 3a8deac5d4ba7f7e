#include "plugin/runtime/compile.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/file_io.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_table.h"
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

ActionKind ReleasingAction(Part part) {
  switch (part) {
    case Part::kForward:
      return ActionKind::kForward;
    case Part::kBackwardInput:
      return ActionKind::kBackwardInput;
    default:
      return ActionKind::kBackwardWeight;
  }
}

// One entry for each channel that carries a value of every micro-batch, seen from its receiver.
std::vector<ChannelCredits> CreditsOf(const Module& module) {
  std::vector<ChannelCredits> credits;
  for (const auto& graph : module.graphs) {
    for (const auto& node : graph->nodes()) {
      if (node->op != "receive" || node->info.rate == Rate::kStep) continue;
      ChannelCredits channel;
      channel.edge.source = ChunkId(static_cast<int>(GetInt(node->attributes, "from", 0)));
      channel.edge.destination = *graph->chunk;
      channel.edge.forward = graph->part == Part::kForward;
      channel.slots = static_cast<int>(GetInt(node->attributes, "slots", 1));
      channel.group = static_cast<int>(GetInt(node->attributes, "group", 1));
      const std::string last = GetString(node->attributes, "released_after", "F");
      for (Part part : kParts) {
        if (last == std::string(1, PartLetter(part))) channel.released_after = ReleasingAction(part);
      }
      credits.push_back(channel);
    }
  }
  return credits;
}

std::vector<CommunicationEdge> EdgesOf(const std::vector<ChannelCredits>& credits) {
  std::vector<CommunicationEdge> edges;
  for (const ChannelCredits& channel : credits) {
    if (std::find(edges.begin(), edges.end(), channel.edge) == edges.end()) edges.push_back(channel.edge);
  }
  return edges;
}

absl::StatusOr<Schedule> MakeLoweredSchedule(const Module& module) {
  const PipelineConfig& config = module.config;
  ASSIGN_OR_RETURN(const Schedule compute,
                   MakeSchedule(config.schedule, config.stages, config.micro_batches, /*chunks_per_rank=*/1));
  const std::vector<ChannelCredits> credits = CreditsOf(module);
  const std::vector<CommunicationEdge> edges = EdgesOf(credits);
  ASSIGN_OR_RETURN(Schedule lowered, LowerCommunication(compute, edges));
  RETURN_IF_ERROR(VerifySchedule(lowered, edges, credits));
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
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule ", module.config.schedule, graph_trains ? " only runs forward" : " trains", ", but graph @",
      module.graphs[0]->name(), graph_trains ? " has an update; choose gpipe or 1f1b" : " has no update; use forward"));
}

}  // namespace

absl::StatusOr<CompiledProgram> Compile(Module module, const CompileOptions& options) {
  CompiledProgram program;
  StepInterface step;
  RETURN_IF_ERROR(ReadInterface(module, &step, &program));
  RETURN_IF_ERROR(CheckScheduleFits(module));
  const bool trains = module.graphs[0]->update.has_value();
  PassPipeline passes(PipelineParallelPasses());
  RETURN_IF_ERROR(passes.Run(module, options.dump_dir));
  ASSIGN_OR_RETURN(program.schedule, MakeLoweredSchedule(module));
  program.stages = SummarizeStages(module);
  if (trains) program.untrained = Untrained(module);
  std::string ranks_text;
  for (int rank = 0; rank < program.schedule.ranks(); ++rank) {
    program.ranks.push_back(BuildRankProgram(module, program.schedule, step, RankId(rank)));
    ranks_text += RankProgramToString(program.ranks.back());
  }
  if (!options.dump_dir.empty()) {
    RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(options.dump_dir, "/rank_programs.txt"), {ranks_text}));
  }
  return program;
}

}  // namespace pipeloom
