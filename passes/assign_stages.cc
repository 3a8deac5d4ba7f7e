#include "passes/assign_stages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"
#include "passes/copy_parameter_nodes.h"
#include "passes/ir/op_table.h"
#include "passes/schedule/schedule_table.h"

namespace pipeloom {
namespace {

std::string Describe(const Node& node) {
  return absl::StrCat(node.info.cell.empty() ? "a node without a cell" : absl::StrCat("cell ", node.info.cell), " (",
                      node.op, node.results.empty() ? "" : absl::StrCat(", %", node.results[0]->name), ")");
}

bool Covers(absl::string_view path, absl::string_view cell) {
  return path.empty() || path == cell || (absl::StartsWith(cell, path) && cell[path.size()] == '.');
}

std::optional<StageId> ConfiguredStage(const PipelineConfig& config, absl::string_view cell) {
  const std::pair<std::string, StageId>* longest = nullptr;
  for (const auto& entry : config.stage_of_cell) {
    if (Covers(entry.first, cell) && (longest == nullptr || entry.first.size() > longest->first.size())) {
      longest = &entry;
    }
  }
  if (longest == nullptr) return std::nullopt;
  return longest->second;
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

// The work on one graph; each step is a function that leaves stages set so far alone.
class Assigner {
 public:
  Assigner(Graph& graph, const PipelineConfig& config)
      : graph_(graph), config_(config), parameter_only_(ParameterOnlyResults(graph)), uses_(ComputeUses(graph)) {}

  absl::Status Run() {
    RETURN_IF_ERROR(AssignByConfig());
    AssignForwardByOperands();
    AssignForwardByUsers();
    AssignBackward();
    AssignUpdate();
    RETURN_IF_ERROR(CheckForwardEdges());
    return CheckNoStageIsEmpty();
  }

 private:
  bool IsParameterOnly(const Node& node) const {
    return !node.results.empty() && parameter_only_.contains(node.results[0]);
  }

  absl::Status AssignByConfig() {
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase != Phase::kForward || node->info.stage || IsParameterOnly(*node)) continue;
      node->info.stage = config_.stages == 1 ? StageId(0) : ConfiguredStage(config_, node->info.cell);
      if (node->info.stage) continue;
      for (const Value* operand : node->operands) {
        const Value* parameter = ParameterBehind(operand);
        if (parameter == nullptr) continue;
        return absl::InvalidArgumentError(absl::StrCat(Describe(*node), " has parameter ", parameter->parameter,
                                                       " but no stage; give it one of 0 to ", config_.stages - 1,
                                                       " in stage_config or by SetPipelineStage"));
      }
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

  void AssignForwardByOperands() {
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase != Phase::kForward || node->info.stage) continue;
      for (const Value* operand : node->operands) {
        if (operand->producer == nullptr || !operand->producer->info.stage) continue;
        node->info.stage = std::max(node->info.stage.value_or(StageId(0)), *operand->producer->info.stage);
      }
    }
  }

  // From the last node up, so that a chain of such nodes follows its end.
  void AssignForwardByUsers() {
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      Node& node = **it;
      if (node.info.phase != Phase::kForward || node.info.stage) continue;
      std::optional<StageId> first;
      for (const Value* result : node.results) {
        for (const Use& use : UsesOf(uses_, result)) {
          const NodeInfo& user = use.node->info;
          if (user.phase == Phase::kForward && user.stage) first = std::min(first.value_or(*user.stage), *user.stage);
        }
      }
      node.info.stage = first.value_or(StageId(0));
    }
  }

  void AssignBackward() {
    // The stage of each cell ("" for the outermost) whose forward nodes all lie on one.
    absl::flat_hash_map<std::string, std::optional<StageId>> stage_of_cell;
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase != Phase::kForward) continue;
      const auto [entry, inserted] = stage_of_cell.emplace(node->info.cell, node->info.stage);
      if (!inserted && entry->second != node->info.stage) entry->second.reset();
    }
    std::vector<Node*> assigned;
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase != Phase::kBackward || node->info.stage) continue;
      assigned.push_back(node.get());
      if (auto cell = stage_of_cell.find(node->info.cell); cell != stage_of_cell.end()) node->info.stage = cell->second;
      if (!node->info.stage) node->info.stage = StageOfOperands(*node);
    }
    // Gradients never go to a higher stage: one that reads forward values of lower stages only goes up to its users.
    for (auto node = assigned.rbegin(); node != assigned.rend(); ++node) {
      for (const Value* result : (*node)->results) {
        for (const Use& use : UsesOf(uses_, result)) {
          if (use.node->info.phase != Phase::kBackward) continue;
          (*node)->info.stage = std::max(*(*node)->info.stage, *use.node->info.stage);
        }
      }
    }
  }

  // The highest stage of the forward values that a backward node reads, else the lowest of the gradients.
  static StageId StageOfOperands(const Node& node) {
    std::optional<StageId> highest_forward;
    std::optional<StageId> lowest_backward;
    for (const Value* operand : node.operands) {
      if (operand->producer == nullptr) continue;
      const NodeInfo& made = operand->producer->info;
      if (made.phase == Phase::kForward) highest_forward = std::max(highest_forward.value_or(*made.stage), *made.stage);
      if (made.phase == Phase::kBackward)
        lowest_backward = std::min(lowest_backward.value_or(*made.stage), *made.stage);
    }
    return highest_forward ? *highest_forward : lowest_backward.value_or(StageId(0));
  }

  void AssignUpdate() {
    absl::flat_hash_map<const Value*, StageId> owner;
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase == Phase::kUpdate) continue;
      for (const Value* operand : node->operands) {
        if (operand->kind != Value::Kind::kParameter) continue;
        const auto [entry, inserted] = owner.emplace(operand, *node->info.stage);
        if (!inserted) entry->second = std::min(entry->second, *node->info.stage);
      }
    }
    // Writers go to their parameter's owner; from the last node up, what they read follows them.
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      Node& node = **it;
      if (node.info.phase != Phase::kUpdate || node.info.stage) continue;
      for (const Value* operand : node.operands) {
        if (auto entry = owner.find(operand); entry != owner.end()) node.info.stage = entry->second;
      }
      for (const Value* result : node.results) {
        for (const Use& use : UsesOf(uses_, result)) node.info.stage = use.node->info.stage;
      }
      if (!node.info.stage) node.info.stage = StageId(0);
    }
  }

  absl::Status CheckForwardEdges() const {
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase != Phase::kForward) continue;
      for (const Value* operand : node->operands) {
        const Node* producer = operand->producer;
        if (producer == nullptr || *producer->info.stage <= *node->info.stage) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            Describe(*node), " on stage ", node->info.stage->value(), " reads %", operand->name, " of ",
            Describe(*producer), " on stage ", producer->info.stage->value(), ": an edge back to a lower stage; put ",
            node->info.cell.empty() ? "it" : node->info.cell, " on stage ", producer->info.stage->value(),
            " or higher, or ", producer->info.cell.empty() ? "the other" : producer->info.cell, " on stage ",
            node->info.stage->value(), " or lower"));
      }
    }
    return absl::OkStatus();
  }

  // Prediction runs the trained network without its loss: the stage of a loss alone has nothing to do then.
  absl::Status CheckNoStageIsEmpty() const {
    const absl::StatusOr<const ScheduleInfo*> schedule = FindSchedule(config_.schedule);
    if (schedule.ok() && !(*schedule)->trains) return absl::OkStatus();
    absl::flat_hash_set<StageId> filled;
    for (const auto& node : graph_.nodes()) {
      if (node->info.phase == Phase::kForward) filled.insert(*node->info.stage);
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
  const absl::flat_hash_set<const Value*> parameter_only_;
  const UseMap uses_;
};

}  // namespace

absl::StatusOr<bool> AssignStages::Run(Module& module) const {
  RETURN_IF_ERROR(CheckConfig(module.config));
  bool changed = false;
  for (auto& graph : module.graphs) {
    changed = changed || std::any_of(graph->nodes().begin(), graph->nodes().end(),
                                     [](const auto& node) { return !node->info.stage; });
    RETURN_IF_ERROR(Assigner(*graph, module.config).Run());
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
