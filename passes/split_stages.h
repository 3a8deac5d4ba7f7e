#ifndef PASSES_SPLIT_STAGES_H_
#define PASSES_SPLIT_STAGES_H_

#include "passes/pass.h"

namespace pipeloom {

// Cuts the step graph into one graph a chunk and part, joined by the names of values:
//
//   graph @step(%x) -> (%loss) {            graph @step chunk 0 F(%x) -> (%h)
//     %h  = relu(%x)    // stage 0           graph @step chunk 0 B(%d.y boundary, %h saved) -> ()
//     %y  = mul(%h, %w) // stage 1      ->   graph @step chunk 1 F(%h boundary) -> (%y, %loss)
//     ...                                    graph @step chunk 1 B(...) -> (%d.y)
//   }                                        graph @step chunk 1 W(%h boundary, %d.y saved) -> (%d.w)
//                                            graph @step chunk 1 U(%d.w saved)
//
// W is what serves one parameter's gradient only, from the last activation gradient on: the contraction over the rows
// (weight multiply, bias sum) and what reshapes its result. The chain of activation gradients is B, on the first stage
// too, so that a schedule can send B's results early and put W off. Parameters and constants are copied to each graph
// that uses them. A stage is one chunk.
class SplitStages : public Pass {
 public:
  absl::string_view name() const override { return "split_stages"; }
  absl::StatusOr<bool> Run(Module& module) const override;
  absl::Status CheckAfter(const Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_SPLIT_STAGES_H_
