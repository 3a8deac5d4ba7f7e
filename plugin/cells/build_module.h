#ifndef PLUGIN_CELLS_BUILD_MODULE_H_
#define PLUGIN_CELLS_BUILD_MODULE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/ir/module.h"
#include "plugin/cells/optimizer.h"
#include "plugin/cells/pipeline.h"

namespace pipeloom {

// The step graphs of a pipeline: one micro-batch, forward only, as Compile takes them. `tree` is that of the pipeline's
// network, `batch` the types of the inputs of a whole step, whose axis 0 is the batch. `config` has the
// stages, the schedule and the threads; micro-batches and the cells' stages are filled in.
//
// Refuses a batch that does not divide into the micro-batches, inputs that disagree about the batch, and what the cells
// refuse, with the path of the cell.

// With the loss and the optimizer's update rule. One output, f32[].
absl::StatusOr<Module> BuildTrainingModule(const Pipeline& pipeline, const CellTree& tree, const Optimizer& optimizer,
                                           const std::vector<TensorType>& batch, PipelineConfig config);

// The network in WithLossCell without its loss; its outputs are those of the micro-batches one after the other.
absl::StatusOr<Module> BuildInferenceModule(const Pipeline& pipeline, const CellTree& tree,
                                            const std::vector<TensorType>& batch, PipelineConfig config);

// The cells that print without a stage of their own, each once; none where there is one stage, or the cells are dealt.
std::vector<std::string> PrintsWithoutStage(const Module& module);

// The network of such a pipeline.
absl::StatusOr<Module> BuildInferenceModule(const PipelineCellInference& pipeline, const CellTree& tree,
                                            const std::vector<TensorType>& batch, PipelineConfig config);

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_BUILD_MODULE_H_
