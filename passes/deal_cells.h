#ifndef PASSES_DEAL_CELLS_H_
#define PASSES_DEAL_CELLS_H_

#include "passes/pass.h"

namespace pipeloom {

// Chooses the stages where the configuration asks for it (deal_cells): the cells in order of execution are cut into
// min(2, cells / stages) runs a stage, as equal in number as can be, and dealt out to the stages in turn:
//
//   pipeline {deal_cells, stages=2, ...}                     pipeline {stages=2, ...}
//   %a = matmul(%x, %w1)  // net.fc1, forward                stage "net.fc1" = 0
//   %b = relu(%a)         // net.act, forward          ->    stage "net.act" = 1
//   %c = matmul(%b, %w2)  // net.fc2, forward                stage "net.fc2" = 0
//   %y = relu(%c)         // net.out, forward                stage "net.out" = 1
//
// The cells are the outermost ones of which there are two a stage or more, less the one that makes the loss. A network
// with other nodes (a prediction has no dropout) may be dealt out otherwise, so a host that has several programs of one
// network gives the later ones the stages that the first one got.
class DealCells : public Pass {
 public:
  absl::string_view name() const override { return "deal_cells"; }
  absl::StatusOr<bool> Run(Module& module) const override;
  // The configuration asks for it no more.
  absl::Status CheckAfter(const Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_DEAL_CELLS_H_
