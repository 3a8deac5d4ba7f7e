#ifndef PASSES_FUSE_H_
#define PASSES_FUSE_H_

#include "passes/pass.h"

namespace pipeloom {

// Draws what follows a multiply into its epilogue, where nobody else sees the values in between:
//
//   %a = matmul(%x, %w)     // net.fc             %h = matmul(%x, %w, %b, %r) {epilogue="bias+residual+relu"}
//   %b1 = add(%a, %b)       // net.fc        ->                                                    // net.fc
//   %r1 = add(%b1, %r)      // net
//   %h = relu(%r1)          // net.act
//
// In this order: a bias along the columns, a residual of the result's type (either may be either operand of its add: a
// sum of two is the same bits both ways), then relu, gelu, tanh or sigmoid; any of them may be missing. The fused node
// stands where the last node stood, so its operands are all there, and in the cell of the multiply. Same bits as
// unfused. A grouped weight gradient is left alone: it runs once a group, not once a micro-batch.
class Fuse : public Pass {
 public:
  absl::string_view name() const override { return "fuse"; }
  absl::StatusOr<bool> Run(Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_FUSE_H_
