#ifndef PASSES_DIFFERENTIATE_H_
#define PASSES_DIFFERENTIATE_H_

#include "passes/pass.h"

namespace pipeloom {

// Adds the backward and the update to a graph that has an update rule (reverse mode; a graph without one is left
// alone):
//
//   %y = matmul(%x, %w)  // net, forward        %y = matmul(%x, %w)                      // net, forward
//   %loss = mse(%y, %t)                         %loss = mse(%y, %t)
//   } update sgd {lr=0.1}                  ->   %d.y = mse_grad(%seed, %y, %t)           // backward
//                                               %d.w = matmul(%x, %d.y) {transpose_a}    // net, backward
//                                               sgd(%w, %d.w) {lr=0.1}                   // net, update
//
// The seed is d(returned loss)/d(loss of a micro-batch): 1 for a sum over micro-batches, 1/M for a mean. All sums are
// binary nodes made here, in program order of the uses: those of an activation run once a micro-batch, those of a
// parameter's uses once a step, so that gradients accumulate per use. A gradient that is an output of the graph gets a
// step_output node beside its update; it is zero where the loss does not depend on the parameter.
class Differentiate : public Pass {
 public:
  absl::string_view name() const override { return "differentiate"; }
  absl::StatusOr<bool> Run(Module& module) const override;
  // Every trainable parameter that a forward node uses on the way to the loss is written by an update node.
  absl::Status CheckAfter(const Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_DIFFERENTIATE_H_
