#ifndef PLUGIN_RUNTIME_COMPILE_H_
#define PLUGIN_RUNTIME_COMPILE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/ir/module.h"
#include "passes/schedule/schedule.h"
#include "plugin/runtime/rank_program.h"
#include "plugin/runtime/stage_summary.h"

namespace pipeloom {

struct CompileOptions {
  // Where to write the graph before and after each pass and the rank programs, numbered; "" for nowhere.
  std::string dump_dir;
};

struct CompiledProgram {
  std::vector<TensorType> inputs;   // of the whole batch
  std::vector<TensorType> outputs;  // of the whole batch
  std::vector<RankProgram> ranks;
  std::vector<StageSummary> stages;
  std::vector<std::pair<std::string, StageId>> stage_of_cell;  // as given, or as deal_cells chose
  std::vector<std::string> untrained;  // trainable parameters that no update writes, since they do not reach the loss
  Schedule schedule;                   // lowered
};

// `module` holds one step graph of one micro-batch: forward only, or forward with an update rule. Errors name the pass,
// the node, its cell and the rule.
absl::StatusOr<CompiledProgram> Compile(Module module, const CompileOptions& options);

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_COMPILE_H_
