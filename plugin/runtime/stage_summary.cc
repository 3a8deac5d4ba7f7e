#include "plugin/runtime/stage_summary.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "passes/ir/op_table.h"

namespace pipeloom {
namespace {

// The cells of the node, or of those in the block that it calls.
std::vector<std::string> CellsOf(const Module& module, const Node& node) {
  if (node.op != kCall) return {node.info.cell};
  std::vector<std::string> cells;
  absl::flat_hash_set<absl::string_view> known;
  for (const auto& inner : BodyOf(module, node)->nodes()) {
    if (known.insert(inner->info.cell).second) cells.push_back(CellInCall(node, inner->info.cell));
  }
  return cells;
}

int64_t Flops(const Module& module, const Node& node) {
  if (node.op != kCall) return NodeFlops(node);
  int64_t flops = 0;
  for (const auto& inner : BodyOf(module, node)->nodes()) flops += NodeFlops(*inner);
  return flops;
}

}  // namespace

std::vector<StageSummary> SummarizeStages(const Module& module) {
  std::vector<StageSummary> stages(static_cast<size_t>(module.config.stages));
  for (size_t i = 0; i < stages.size(); ++i) stages[i].stage = StageId(static_cast<int>(i));
  std::vector<absl::flat_hash_set<std::string>> listed_of(stages.size());
  for (const auto& graph : module.graphs) {
    const auto number = static_cast<size_t>(module.config.StageOf(*graph->chunk).value());
    StageSummary& stage = stages[number];
    absl::flat_hash_set<std::string>& listed = listed_of[number];
    for (const auto& node : graph->nodes()) {
      if (node->info.phase == Phase::kForward) {
        for (std::string& cell : CellsOf(module, *node)) {
          if (!cell.empty() && listed.insert(cell).second) stage.cells.push_back(std::move(cell));
        }
      }
      if (node->info.rate == Rate::kMicro) stage.flops += Flops(module, *node);
    }
    if (graph->part != Part::kForward) continue;
    for (const Value* parameter : graph->parameters()) {
      if (std::count(stage.parameters.begin(), stage.parameters.end(), parameter->parameter) > 0) continue;
      stage.parameters.push_back(parameter->parameter);
      stage.parameter_bytes += parameter->type.bytes();
    }
  }
  return stages;
}

std::string StageTable(const std::vector<StageSummary>& stages) {
  std::vector<std::string> cells = {"cells"};
  std::vector<std::string> parameters = {"parameters"};
  for (const StageSummary& stage : stages) {
    cells.push_back(absl::StrJoin(stage.cells, ", "));
    parameters.push_back(absl::StrJoin(stage.parameters, ", "));
  }
  const auto width = [](const std::vector<std::string>& column) {
    size_t widest = 0;
    for (const std::string& entry : column) widest = std::max(widest, entry.size());
    return static_cast<int>(widest);
  };
  std::string table = absl::StrFormat("%5s  %-*s  %-*s  %12s  %20s\n", "stage", width(cells), cells[0],
                                      width(parameters), parameters[0], "bytes", "FLOPs/micro-batch");
  for (size_t i = 0; i < stages.size(); ++i) {
    absl::StrAppendFormat(&table, "%5d  %-*s  %-*s  %12d  %20d\n", stages[i].stage.value(), width(cells), cells[i + 1],
                          width(parameters), parameters[i + 1], stages[i].parameter_bytes, stages[i].flops);
  }
  return table;
}

}  // namespace pipeloom
