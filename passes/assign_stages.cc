#include "passes/assign_stages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"
#include "passes/configured_stages.h"
#include "passes/copy_parameter_nodes.h"
#include "passes/ir/op_table.h"
#include "passes/schedule/schedule_table.h"

namespace pipeloom {
namespace {

std::string Describe(const Node& node) {
  return absl::StrCat(node.info.cell.empty() ? "a node without a cell" : absl::StrCat("cell ", node.info.cell), " (",
                      node.op, node.results.empty() ? "" : absl::StrCat(", %", node.results[0]->name), ")");
}

absl::Status CheckConfig(const PipelineConfig& config) {
  absl::flat_hash_map<absl::string_view, StageId> stage_of;
  for (const auto& [path, stage] : config.stage_of_cell) {
    if (const auto [entry, inserted] = stage_of.emplace(path, stage); !inserted) {
      return absl::InvalidArgumentError(absl::StrCat("cell ", path, " is given a stage twice, ", entry->second.value(),
                                                     " and ", stage.value(), "; give it one"));
    }
    if (stage < StageId(0) || stage >= StageId(config.stages)) {
      return absl::InvalidArgumentError(absl::StrCat("cell ", path, " is on stage ", stage.value(), ", but there are ",
                                                     config.stages, " stages; choose 0 to ", config.stages - 1));
    }
  }
  return absl::OkStatus();
}

// The work on one graph; each step is a function that leaves stages set so far alone. Thinks in chunks: those of stage
// s are s, s + stages, s + 2 stages, ...
class Assigner {
 public:
  Assigner(Graph& graph, const PipelineConfig& config)
      : graph_(graph),
        config_(config),
        configured_(config),
        parameter_only_(ParameterOnlyResults(graph)),
        uses_(ComputeUses(graph)) {
    for (const auto& node : graph_.nodes()) {
      if (node->info.stage) chunk_of_[node.get()] = ChunkOf(node->info);
    }
  }

  // How many chunks a rank has.
  absl::StatusOr<int> Run() {
    RETURN_IF_ERROR(AssignForward());
    AssignForwardByUsers();
    AssignBackward();
    AssignUpdate();
    RETURN_IF_ERROR(CheckSeveralChunks());
    RETURN_IF_ERROR(CheckNoStageIsEmpty());
    for (const auto& node : graph_.nodes()) {
      const ChunkId chunk = chunk_of_.at(node.get());
      node->info.stage = config_.StageOf(chunk);
      if (chunk.value() >= config_.stages) node->info.chunk = chunk;
    }
    return ChunksPerRank();
  }

 private:
  bool IsParameterOnly(const Node& node) const {
    return !node.results.empty() && parameter_only_.contains(node.results[0]);
  }

  std::optional<ChunkId> FindChunk(const Node* node) const {
    const auto entry = chunk_of_.find(node);
    return entry == chunk_of_.end() ? std::nullopt : std::optional<ChunkId>(entry->second);
  }

  // In order of the nodes: a node with a stage is on the first chunk of its stage that is not before what it reads; one
  // without is where the last of what it reads is.
  absl::Status AssignForward() {
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase != Phase::kForward || FindChunk(node.get()) || IsParameterOnly(*node)) continue;
      std::optional<ChunkId> last_read;
      for (const Value* operand : node->operands) last_read = std::max(last_read, FindChunk(operand->producer));
      const std::optional<StageId> stage = config_.stages == 1 ? StageId(0) : configured_.Find(node->info.cell);
      if (stage) {
        chunk_of_[node.get()] = FirstChunk(*stage, last_read.value_or(ChunkId(0)));
        continue;
      }
      RETURN_IF_ERROR(CheckNoParameter(*node));
      if (last_read) chunk_of_[node.get()] = *last_read;
    }
    return absl::OkStatus();
  }

  ChunkId FirstChunk(StageId stage, ChunkId at_least) const {
    const int round = at_least.value() / config_.stages;
    const int chunk = round * config_.stages + stage.value();
    return ChunkId(chunk >= at_least.value() ? chunk : chunk + config_.stages);
  }

  absl::Status CheckNoParameter(const Node& node) const {
    for (const Value* operand : node.operands) {
      const Value* parameter = ParameterBehind(operand);
      if (parameter == nullptr) continue;
      return absl::InvalidArgumentError(absl::StrCat(Describe(node), " has parameter ", parameter->parameter,
                                                     " but no stage; give it one of 0 to ", config_.stages - 1,
                                                     " in stage_config or by SetPipelineStage"));
    }
    return absl::OkStatus();
  }

  // The parameter that `value` is, or is made of where it depends on parameters and constants alone.
  const Value* ParameterBehind(const Value* value) const {
    if (value->kind == Value::Kind::kParameter) return value;
    if (!parameter_only_.contains(value)) return nullptr;
    for (const Value* operand : value->producer->operands) {
      if (const Value* parameter = ParameterBehind(operand)) return parameter;
    }
    return nullptr;
  }

  // What reads inputs, parameters and constants only. From the last node up, so that a chain follows its end.
  void AssignForwardByUsers() {
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      const Node& node = **it;
      if (node.info.phase != Phase::kForward || FindChunk(&node)) continue;
      std::optional<ChunkId> first;
      for (const Value* result : node.results) {
        for (const Use& use : UsesOf(uses_, result)) {
          const std::optional<ChunkId> user = FindChunk(use.node);
          if (use.node->info.phase == Phase::kForward && user) first = std::min(first.value_or(*user), *user);
        }
      }
      // What is only handed out is made where the parameter is used, which is where it is up to date.
      for (const Value* operand : node.operands) {
        if (!first && operand->kind == Value::Kind::kParameter) first = FirstReader(operand);
      }
      chunk_of_[&node] = first.value_or(ChunkId(0));
    }
  }

  std::optional<ChunkId> FirstReader(const Value* parameter) const {
    std::optional<ChunkId> first;
    for (const Use& use : UsesOf(uses_, parameter)) {
      const std::optional<ChunkId> reader = FindChunk(use.node);
      if (reader) first = std::min(first.value_or(*reader), *reader);
    }
    return first;
  }

  void AssignBackward() {
    absl::flat_hash_map<std::string, std::vector<ChunkId>> chunks_of_cell;  // "" is the outermost
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase != Phase::kForward) continue;
      std::vector<ChunkId>& chunks = chunks_of_cell[node->info.cell];
      const ChunkId chunk = chunk_of_.at(node.get());
      if (std::find(chunks.begin(), chunks.end(), chunk) == chunks.end()) chunks.push_back(chunk);
    }
    std::vector<Node*> assigned;
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase != Phase::kBackward || FindChunk(node.get())) continue;
      assigned.push_back(node.get());
      const auto cell = chunks_of_cell.find(node->info.cell);
      const std::optional<ChunkId> of_cell =
          cell == chunks_of_cell.end() ? std::nullopt : ChunkOfCell(*node, cell->second);
      chunk_of_[node.get()] = of_cell ? *of_cell : ChunkOfOperands(*node);
    }
    // Gradients never go to a higher chunk: one that reads forward values of lower chunks only goes up to its users.
    for (auto node = assigned.rbegin(); node != assigned.rend(); ++node) {
      ChunkId& chunk = chunk_of_[*node];
      for (const Value* result : (*node)->results) {
        for (const Use& use : UsesOf(uses_, result)) {
          if (use.node->info.phase == Phase::kBackward) chunk = std::max(chunk, chunk_of_.at(use.node));
        }
      }
    }
  }

  // Where the forward of the node's cell is, if it is on one stage: in its only chunk, or, of a cell that is used
  // several times, the last one that the gradients which the node reads have not passed yet.
  std::optional<ChunkId> ChunkOfCell(const Node& node, const std::vector<ChunkId>& chunks) const {
    if (chunks.size() == 1) return chunks[0];
    std::optional<ChunkId> passed;
    for (const Value* operand : node.operands) {
      const Node* producer = operand->producer;
      if (producer == nullptr || producer->info.phase != Phase::kBackward) continue;
      passed = std::min(passed.value_or(chunk_of_.at(producer)), chunk_of_.at(producer));
    }
    std::optional<ChunkId> last;
    for (const ChunkId chunk : chunks) {
      if (config_.StageOf(chunk) != config_.StageOf(chunks[0])) return std::nullopt;
      if (!passed || chunk <= *passed) last = std::max(last, std::optional<ChunkId>(chunk));
    }
    return last;
  }

  // The highest chunk of the forward values that a backward node reads, else the lowest of the gradients.
  ChunkId ChunkOfOperands(const Node& node) const {
    std::optional<ChunkId> highest_forward;
    std::optional<ChunkId> lowest_backward;
    for (const Value* operand : node.operands) {
      if (operand->producer == nullptr) continue;
      const ChunkId made = chunk_of_.at(operand->producer);
      const Phase phase = operand->producer->info.phase;
      if (phase == Phase::kForward) highest_forward = std::max(highest_forward.value_or(made), made);
      if (phase == Phase::kBackward) lowest_backward = std::min(lowest_backward.value_or(made), made);
    }
    return highest_forward ? *highest_forward : lowest_backward.value_or(ChunkId(0));
  }

  void AssignUpdate() {
    absl::flat_hash_map<const Value*, ChunkId> owner;
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase == Phase::kUpdate) continue;
      const ChunkId chunk = chunk_of_.at(node.get());
      for (const Value* operand : node->operands) {
        if (operand->kind != Value::Kind::kParameter) continue;
        const auto [entry, inserted] = owner.emplace(operand, chunk);
        if (!inserted) entry->second = std::min(entry->second, chunk);
      }
    }
    // Writers go to their parameter's owner; from the last node up, what they read follows them.
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      const Node& node = **it;
      if (node.info.phase != Phase::kUpdate || FindChunk(&node)) continue;
      std::optional<ChunkId> chunk;
      for (const Value* operand : node.operands) {
        if (auto entry = owner.find(operand); entry != owner.end()) chunk = entry->second;
      }
      for (const Value* result : node.results) {
        for (const Use& use : UsesOf(uses_, result)) chunk = chunk_of_.at(use.node);
      }
      // What gives out a gradient stands above its writer, and goes there.
      if (!chunk && node.op == "step_output") chunk = ChunkOfReaders(*node.operands[0]);
      chunk_of_[&node] = chunk.value_or(ChunkId(0));
    }
  }

  std::optional<ChunkId> ChunkOfReaders(const Value& value) const {
    std::optional<ChunkId> chunk;
    for (const Use& use : UsesOf(uses_, &value)) {
      if (use.node->info.phase == Phase::kUpdate && !chunk) chunk = FindChunk(use.node);
    }
    return chunk;
  }

  int ChunksPerRank() const {
    int chunks = 1;
    for (const auto& [node, chunk] : chunk_of_) chunks = std::max(chunks, chunk.value() + 1);
    return (chunks + config_.stages - 1) / config_.stages;
  }

  // Only some schedules come back to a stage.
  absl::Status CheckSeveralChunks() const {
    ASSIGN_OR_RETURN(const ScheduleInfo* schedule, FindSchedule(config_.schedule));
    const bool runs = schedule->precondition({config_.stages, config_.micro_batches, ChunksPerRank()}).ok();
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase != Phase::kForward) continue;
      const StageId stage = config_.StageOf(chunk_of_.at(node.get()));
      for (const Value* operand : node->operands) {
        const Node* producer = operand->producer;
        if (producer == nullptr || config_.StageOf(chunk_of_.at(producer)) <= stage) continue;
        if (runs && chunk_of_.at(producer) <= chunk_of_.at(node.get())) continue;
        const int higher = config_.StageOf(chunk_of_.at(producer)).value();
        return absl::InvalidArgumentError(
            absl::StrCat(Describe(*node), " on stage ", stage.value(), " reads %", operand->name, " of ",
                         Describe(*producer), " on stage ", higher, ": an edge back to a lower stage; put ",
                         node->info.cell.empty() ? "it" : node->info.cell, " on stage ", higher, " or higher, or ",
                         producer->info.cell.empty() ? "the other" : producer->info.cell, " on stage ", stage.value(),
                         " or lower, or choose schedule interleaved"));
      }
    }
    if (runs) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("schedule ", config_.schedule, " runs 1 chunk a rank; the nodes are on ", ChunksPerRank()));
  }

  // Prediction runs the trained network without its loss: the stage of a loss alone has nothing to do then.
  absl::Status CheckNoStageIsEmpty() const {
    const absl::StatusOr<const ScheduleInfo*> schedule = FindSchedule(config_.schedule);
    if (schedule.ok() && !(*schedule)->trains) return absl::OkStatus();
    absl::flat_hash_set<StageId> filled;
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase == Phase::kForward) filled.insert(config_.StageOf(chunk_of_.at(node.get())));
    }
    for (int stage = 0; stage < config_.stages; ++stage) {
      if (filled.contains(StageId(stage))) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "stage ", stage, " of ", config_.stages, " is empty: no cell is on it; use fewer stages, or give ",
          "it one of the cells (", absl::StrJoin(ConfiguredCells(), ", "), ")"));
    }
    return absl::OkStatus();
  }

  std::vector<std::string> ConfiguredCells() const {
    std::vector<std::string> cells;
    for (const auto& [path, stage] : config_.stage_of_cell) {
      cells.push_back(absl::StrCat(path.empty() ? "the whole network" : path, ": ", stage.value()));
    }
    return cells;
  }

  Graph& graph_;
  const PipelineConfig& config_;
  const ConfiguredStages configured_;
  const absl::flat_hash_set<const Value*> parameter_only_;
  const UseMap uses_;
  absl::flat_hash_map<const Node*, ChunkId> chunk_of_;
};

}  // namespace

absl::StatusOr<bool> AssignStages::Run(Module& module) const {
  RETURN_IF_ERROR(CheckConfig(module.config));
  bool changed = false;
  for (auto& graph : module.graphs) {
    changed = changed || std::any_of(graph->nodes().begin(), graph->nodes().end(),
                                     [](const auto& node) { return !node->info.stage; });
    ASSIGN_OR_RETURN(const int chunks_per_rank, Assigner(*graph, module.config).Run());
    changed = changed || chunks_per_rank != module.config.chunks_per_rank;
    module.config.chunks_per_rank = chunks_per_rank;
  }
  return changed;
}

absl::Status AssignStages::CheckAfter(const Module& module) const {
  for (const auto& graph : module.graphs) {
    for (const auto& node : graph->nodes()) {
      if (!node->info.stage) return absl::InternalError(absl::StrCat(Describe(*node), " has no stage"));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
