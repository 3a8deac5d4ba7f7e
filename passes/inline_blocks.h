#ifndef PASSES_INLINE_BLOCKS_H_
#define PASSES_INLINE_BLOCKS_H_

#include "passes/pass.h"

namespace pipeloom {

// Puts the nodes of a block in the place of each of its calls, and removes the blocks:
//
//   %y = call(%x, %w) {block="net.0"}  // net.0     ->     %a = matmul(%x, %w)  // net.0.dense
//                                                          %y = relu(%a)        // net.0
//
// The cells of a call may lie on several stages, and the passes from assign_stages on know no calls. It comes after
// `differentiate`, so that gradients are summed in the same order whether a call is inlined or not.
class InlineBlocks : public Pass {
 public:
  absl::string_view name() const override { return "inline_blocks"; }
  absl::StatusOr<bool> Run(Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_INLINE_BLOCKS_H_
