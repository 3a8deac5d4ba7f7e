#ifndef PLUGIN_RUNTIME_STAGE_SUMMARY_H_
#define PLUGIN_RUNTIME_STAGE_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/ids.h"
#include "passes/ir/module.h"

namespace pipeloom {

// What one stage holds, for the table that a host prints at start.
struct StageSummary {
  StageId stage;
  std::vector<std::string> cells;       // paths, in program order
  std::vector<std::string> parameters;  // names; a shared one stands in each stage that uses it
  int64_t parameter_bytes = 0;
  int64_t flops = 0;  // of one micro-batch: forward, and backward when training
};

// Of a split module, one a stage.
std::vector<StageSummary> SummarizeStages(const Module& module);

// The table: stage, cells, parameters, bytes, FLOPs a micro-batch; one row a stage.
std::string StageTable(const std::vector<StageSummary>& stages);

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_STAGE_SUMMARY_H_
