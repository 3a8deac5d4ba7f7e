#include "plugin/runtime/stage_summary.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "passes/ir/op_table.h"

namespace pipeloom {

std::vector<StageSummary> SummarizeStages(const Module& module) {
  std::vector<StageSummary> stages(static_cast<size_t>(module.config.stages));
  for (size_t i = 0; i < stages.size(); ++i) stages[i].stage = StageId(static_cast<int>(i));
  std::vector<absl::flat_hash_set<absl::string_view>> listed_of(stages.size());
  for (const auto& graph : module.graphs) {
    const auto number = static_cast<size_t>(module.config.StageOf(*graph->chunk).value());
    StageSummary& stage = stages[number];
    absl::flat_hash_set<absl::string_view>& listed = listed_of[number];
    for (const auto& node : graph->nodes()) {
      const std::string& cell = node->info.cell;
      if (node->info.phase == Phase::kForward && !cell.empty() && listed.insert(cell).second) {
        stage.cells.push_back(cell);
      }
      if (node->info.rate == Rate::kMicro) stage.flops += NodeFlops(*node);
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
