#ifndef PASSES_PLAN_BUFFERS_H_
#define PASSES_PLAN_BUFFERS_H_

#include "passes/pass.h"

namespace pipeloom {

// Gives every result its bytes, in buffers of its chunk or in the slots of a channel (views have those of their
// operand):
//
//   %a = matmul(%x, %w)            // ...        ->  // ..., buffer 0 x 1      read in F only, shared with others
//   %h = relu(%a)                                    // ..., buffer 1 x 4      kept for W, which reads groups of 4
//   %d.x = matmul(%d.h, %w)                          // ..., channel 2 x 3     made for another rank, in its slot
//   %d.w = matmul(%x, %d.h)                          // ..., buffer 2 x 2 first_apart
//   %d.w.acc = grad_accumulate(%d.w)                 // ..., buffer 2 x 1      the first addend is the accumulator
//
// A value that another part of its chunk reads has a slot for each micro-batch in flight under the schedule, and so
// many that a group of micro-batches lies in one row of slots; a channel has one more than its sender runs ahead under
// the schedule, so that it seldom waits for one. No slot is padded: the stride is the value's size.
class PlanBuffers : public Pass {
 public:
  absl::string_view name() const override { return "plan_buffers"; }
  absl::StatusOr<bool> Run(Module& module) const override;
  // No two live values overlap.
  absl::Status CheckAfter(const Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_PLAN_BUFFERS_H_
