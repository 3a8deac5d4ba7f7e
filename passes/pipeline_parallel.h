#ifndef PASSES_PIPELINE_PARALLEL_H_
#define PASSES_PIPELINE_PARALLEL_H_

#include <memory>
#include <vector>

#include "passes/pass.h"

namespace pipeloom {

// All passes from a host's step graph to planned stage graphs, in the one order in which they run.
std::vector<std::unique_ptr<Pass>> PipelineParallelPasses();

}  // namespace pipeloom

#endif  // PASSES_PIPELINE_PARALLEL_H_
