#ifndef PASSES_COPY_STEP_NODES_H_
#define PASSES_COPY_STEP_NODES_H_

#include "passes/pass.h"

namespace pipeloom {

// Update nodes that depend on no gradient (a learning rate that follows the number of the step, that number itself)
// have no stage of their own. Every stage gets a copy of those that its updates read, and of all that write a
// parameter, so that each rank keeps its own copy of such parameters up to date and nothing of it is sent:
//
//   %rate = mul(%base, %decay)  // stage 0             %rate = mul(%base, %decay)    // stage 0
//   sgd(%w1, %d.w1, %rate)      // stage 0             %rate.1 = mul(%base, %decay)  // stage 1
//   sgd(%w2, %d.w2, %rate)      // stage 1      ->     sgd(%w1, %d.w1, %rate)        // stage 0
//   assign_add(%count, %one)    // stage 0             sgd(%w2, %d.w2, %rate.1)      // stage 1
//                                                      assign_add(%count, %one)      // stage 0
//                                                      assign_add(%count, %one)      // stage 1
class CopyStepNodes : public Pass {
 public:
  absl::string_view name() const override { return "copy_step_nodes"; }
  absl::StatusOr<bool> Run(Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_COPY_STEP_NODES_H_
