#ifndef PASSES_ROLL_MICRO_BATCHES_H_
#define PASSES_ROLL_MICRO_BATCHES_H_

#include "passes/pass.h"

namespace pipeloom {

// Finds the micro-batches that a host wrote out as calls of one block, and rolls them into one:
//
//   pipeline {micro_batches=1}                             pipeline {micro_batches=2}
//   graph @step(%x: f32[8,4]) -> (%loss {reduce="sum"})    graph @step(%x: f32[4,4]) -> (%l {reduce="sum"})
//     %x0 = slice(%x) {begin=[0, 0], size=[4, 4]}            ... the nodes of block @net, on %x
//     %x1 = slice(%x) {begin=[4, 0], size=[4, 4]}     ->
//     %l0 = call(%x0, %w) {block="net"}
//     %l1 = call(%x1, %w) {block="net"}
//     %loss = add(%l0, %l1)
//
// The slices of each input are equal and without a gap along its batch axis, call k reads the k-th of them, all else is
// the same in all calls, and each result is merged by one concat along axis 0 or by additions from the first call to
// the last, perhaps times 1 / M. A graph whose input is cut so and that is anything else is refused, with what differs;
// one whose batch nobody cuts is left alone. The block is inlined: what is repeated in it is looked for afterwards.
class RollMicroBatches : public Pass {
 public:
  absl::string_view name() const override { return "roll_micro_batches"; }
  absl::StatusOr<bool> Run(Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_ROLL_MICRO_BATCHES_H_
