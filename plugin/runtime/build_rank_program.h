#ifndef PLUGIN_RUNTIME_BUILD_RANK_PROGRAM_H_
#define PLUGIN_RUNTIME_BUILD_RANK_PROGRAM_H_

#include <string>
#include <vector>

#include "passes/ir/module.h"
#include "passes/schedule/schedule.h"
#include "plugin/runtime/rank_program.h"

namespace pipeloom {

// What the step graph takes and gives, which the split module no longer says.
struct StepInterface {
  std::vector<std::string> inputs;  // names, in order
  std::vector<TensorType> outputs;  // of the whole batch
};

// The share of `rank` of a module that all passes have gone over, under a lowered schedule.
RankProgram BuildRankProgram(const Module& module, const Schedule& schedule, const StepInterface& step, RankId rank);

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_BUILD_RANK_PROGRAM_H_
