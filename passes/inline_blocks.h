#ifndef PASSES_INLINE_BLOCKS_H_
#define PASSES_INLINE_BLOCKS_H_

#include "passes/pass.h"

namespace pipeloom {

// Puts the nodes of a block in the place of a call that has not one stage for all its cells:
//
//   stage "net.0.dense" = 0, stage "net.0" = 1
//   %y = call(%x, %w) {block="net.0"}  // net.0     ->     %a = matmul(%x, %w)  // net.0.dense
//                                                          %y = relu(%a)        // net.0
//
// With it go the calls that are its backward. It comes after `differentiate`, so that gradients are summed in the same
// order whether a call is inlined or not. Blocks that nothing calls any more are removed.
class InlineBlocks : public Pass {
 public:
  absl::string_view name() const override { return "inline_blocks"; }
  absl::StatusOr<bool> Run(Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_INLINE_BLOCKS_H_
