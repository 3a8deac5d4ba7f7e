#ifndef PASSES_INSERT_MICRO_BATCHES_H_
#define PASSES_INSERT_MICRO_BATCHES_H_

#include "passes/pass.h"

namespace pipeloom {

// Joins what happens once a micro-batch with what happens once a step, M times:
//
//   F(%x: f32[8,4] {batch_axis=0})             F(%x: f32[32,4] {batch_axis=0})
//     %y = relu(%x)                        ->    %x.micro = micro_batch_slice(%x) {axis=0, count=4}
//   -> (%y {reduce="concat"})                    %y = relu(%x.micro)
//                                                %y.step = micro_batch_merge(%y) {count=4, reduce="concat"}
//                                                step_output(%y.step) {index=0}
//
// Inputs with a batch axis take the whole batch and are sliced along it; outputs are summed, averaged or concatenated;
// a gradient that an update reads is accumulated, in micro-batch order, one accumulator for each use of a parameter.
class InsertMicroBatches : public Pass {
 public:
  absl::string_view name() const override { return "insert_micro_batches"; }
  absl::StatusOr<bool> Run(Module& module) const override;
  // No node of rate step reads a value of rate micro, but the merging ones.
  absl::Status CheckAfter(const Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_INSERT_MICRO_BATCHES_H_
