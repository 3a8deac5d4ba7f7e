#ifndef PLUGIN_CELLS_PIPELINE_H_
#define PLUGIN_CELLS_PIPELINE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/base/ids.h"
#include "plugin/cells/cell_tree.h"

namespace pipeloom {

// Cell path, such as _backbone.layer1, -> stage. A path covers the cells in it ("" all cells); the longest path wins.
using StageConfig = std::vector<std::pair<std::string, int>>;

// A network with its loss, to be run in micro-batches on stages; as MindSpore's Pipeline cell. Stages come from
// `stage_config` and from SetPipelineStage of the cells.
struct Pipeline {
  Pipeline(std::shared_ptr<Cell> net_with_loss, int micro_size, StageConfig stage_config = {},
           std::string loss_reduction = "mean")
      : net_with_loss(std::move(net_with_loss)),
        micro_size(micro_size),
        stage_config(std::move(stage_config)),
        loss_reduction(std::move(loss_reduction)) {}

  std::shared_ptr<Cell> net_with_loss;
  int micro_size;  // micro-batches a step
  StageConfig stage_config;
  std::string loss_reduction;  // how the losses of the micro-batches make one, which is what is minimised: mean, sum
};

// A network without a loss, to be run forward in micro-batches on stages: the batch is cut into `micro_batch_num` equal
// slices, and the outputs of these are put one after the other again. Paths of cells begin in the network itself.
struct PipelineCellInference {
  PipelineCellInference(std::shared_ptr<Cell> network, int micro_batch_num, StageConfig stage_config = {})
      : network(std::move(network)), micro_batch_num(micro_batch_num), stage_config(std::move(stage_config)) {}

  std::shared_ptr<Cell> network;
  int micro_batch_num;
  StageConfig stage_config;
};

// All stages that the user gave, by path: stage_config, then the cells' own. Refuses a path that the network does not
// have, a path given twice, and a stage other than the cell's own.
absl::StatusOr<std::vector<std::pair<std::string, StageId>>> StagesOfCells(const CellTree& tree,
                                                                           const StageConfig& stage_config);

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_PIPELINE_H_
