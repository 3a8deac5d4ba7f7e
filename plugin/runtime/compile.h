#ifndef PLUGIN_RUNTIME_COMPILE_H_
#define PLUGIN_RUNTIME_COMPILE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/ir/module.h"
#include "plugin/runtime/rank_program.h"

namespace pipeloom {

struct CompileOptions {
  // Where to write the graph before and after each pass and the rank programs, numbered; "" for nowhere.
  std::string dump_dir;
};

// What one stage holds, for the table that a host prints at start.
struct StageSummary {
  StageId stage;
  std::vector<std::string> cells;       // paths, in program order
  std::vector<std::string> parameters;  // names; a shared one stands in each stage that uses it
  int64_t parameter_bytes = 0;
  int64_t flops = 0;  // of one micro-batch's forward (and backward, when training)
};

struct CompiledProgram {
  std::vector<TensorType> inputs;   // of the whole batch
  std::vector<TensorType> outputs;  // of the whole batch
  std::vector<RankProgram> ranks;
  std::vector<StageSummary> stages;
};

// `module` holds one step graph of one micro-batch: forward only, or forward with an update rule. Errors name the pass,
// the node, its cell and the rule.
absl::StatusOr<CompiledProgram> Compile(Module module, const CompileOptions& options);

// The table: stage, cells, parameters, bytes, FLOPs a micro-batch; one row a stage.
std::string StageTable(const std::vector<StageSummary>& stages);

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_COMPILE_H_
