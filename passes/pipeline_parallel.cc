#include "passes/pipeline_parallel.h"

#include "passes/assign_stages.h"
#include "passes/choose_kernels.h"
#include "passes/copy_parameter_nodes.h"
#include "passes/copy_step_nodes.h"
#include "passes/deal_cells.h"
#include "passes/differentiate.h"
#include "passes/fuse.h"
#include "passes/inline_blocks.h"
#include "passes/insert_grad_reducers.h"
#include "passes/insert_micro_batches.h"
#include "passes/insert_send_receive.h"
#include "passes/outline_blocks.h"
#include "passes/plan_buffers.h"
#include "passes/roll_micro_batches.h"
#include "passes/split_stages.h"

namespace pipeloom {

std::vector<std::unique_ptr<Pass>> PipelineParallelPasses() {
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(std::make_unique<RollMicroBatches>());    // first: all else is about one micro-batch
  passes.push_back(std::make_unique<DealCells>());           // looks at the network as the host gave it
  passes.push_back(std::make_unique<OutlineBlocks>());       // before all work on nodes: a block's is done once
  passes.push_back(std::make_unique<CopyParameterNodes>());  // each use of a parameter then gets its own gradient
  passes.push_back(std::make_unique<Differentiate>());  // makes every floating-point sum, before any stage is known
  passes.push_back(std::make_unique<ChooseKernels>());  // before stages: the choice must not depend on them
  passes.push_back(
      std::make_unique<InlineBlocks>());  // before stages, of which a call has one; after all sums are made
  passes.push_back(std::make_unique<AssignStages>());        // backward and update nodes follow forward ones
  passes.push_back(std::make_unique<CopyStepNodes>());       // a learning rate is made on the stages that use it
  passes.push_back(std::make_unique<SplitStages>());         // from here on: one graph a chunk and part
  passes.push_back(std::make_unique<InsertMicroBatches>());  // fixes what happens once a step, so R knows its sums
  passes.push_back(std::make_unique<InsertGradReducers>());  // adds boundary values, so it goes before the channels
  passes.push_back(std::make_unique<InsertSendReceive>());   // makes the channels of all boundary values
  passes.push_back(std::make_unique<Fuse>());         // after the cuts: a value that is sent cannot be fused away
  passes.push_back(std::make_unique<PlanBuffers>());  // last: nothing may change once bytes are given out
  return passes;
}

}  // namespace pipeloom
