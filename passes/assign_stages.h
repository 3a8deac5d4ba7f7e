#ifndef PASSES_ASSIGN_STAGES_H_
#define PASSES_ASSIGN_STAGES_H_

#include "passes/pass.h"

namespace pipeloom {

// Gives every node a stage:
//
//   stage "layer1" = 0, stage "layer2" = 1
//   %a = matmul(%x, %w1)  // layer1, forward         ->  // layer1, stage 0, forward
//   %h = relu(%a)         // forward                 ->  // stage 0, forward
//   %y = matmul(%h, %w2)  // layer2, forward         ->  // layer2, stage 1, forward
//   sgd(%w1, %d.w1)       // layer1, update          ->  // layer1, stage 0, update
//
// A cell's stage is that of the longest path in the configuration that covers it. A forward node without one follows
// its operands (the last of them), or its users where it reads inputs only; nodes of parameters alone go to their
// user. A backward node goes where its cell's forward nodes are, else where the forward values that it reads are. What
// updates a parameter goes to the first chunk that uses it, its owner.
//
// Where values come back to a lower stage, the next chunk of that stage begins (stages 0 1 0 1 are chunks 0 1 2 3);
// only schedules with several chunks a rank can run that. A stage that is left out in a round has an empty chunk.
class AssignStages : public Pass {
 public:
  absl::string_view name() const override { return "assign_stages"; }
  absl::StatusOr<bool> Run(Module& module) const override;
  // Every node has a stage.
  absl::Status CheckAfter(const Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_ASSIGN_STAGES_H_
