#ifndef PASSES_CHOOSE_KERNELS_H_
#define PASSES_CHOOSE_KERNELS_H_

#include "passes/pass.h"

namespace pipeloom {

// Writes down what would change bits if it were chosen later: which kernel multiplies, and how many micro-batches'
// weight gradients are one multiply (micro_batches=4, 8 rows each):
//
//   %y   = matmul(%x, %w)                        ->  ... {kernel="brg"}
//   %d.w = matmul(%x, %d.y) {transpose_a}        ->  ... {group=4, kernel="brg", transpose_a}
//   %d.b = reduce_sum(%d.y) {axes=[0]}           ->  ... {axes=[0], group=4}
//
// brg (oneDNN's brgemm) and rows (our own product of a few rows with a large weight, which takes half of brgemm's time
// there) give rows that do not depend on how many rows there are, nor on alignment; other kernels' do. One multiply
// over 32 rows differs from four over 8 in most bits, so g = min(micro_batches, ceil(128 / rows)) may depend only on
// the shape of one micro-batch, never on a stage, a schedule or a timing. From 128 rows up, more rows gain nothing.
class ChooseKernels : public Pass {
 public:
  absl::string_view name() const override { return "choose_kernels"; }
  absl::StatusOr<bool> Run(Module& module) const override;
  // Every matmul has its kernel, and no group is larger than the number of micro-batches.
  absl::Status CheckAfter(const Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_CHOOSE_KERNELS_H_
