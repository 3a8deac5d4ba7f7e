#ifndef PASSES_OUTLINE_BLOCKS_H_
#define PASSES_OUTLINE_BLOCKS_H_

#include "passes/pass.h"

namespace pipeloom {

// Makes blocks of cells that compute the same, so that later passes do their work once for all of them (see
// OutlineRegions for before and after). It looks at cells side by side, the outermost first, and in those that are not
// repeated at what is in them:
//
//   net.0: matmul, add    net.1: relu    net.2: matmul, add    net.3: relu    net.4: matmul
//   \------------ call ------------/     \------------ call ------------/      stays
//
// A run of cells that is repeated becomes one block, the shortest of those that cover most. Cells that are equal but
// stand apart become blocks too, unless fuse could draw what follows into them. Blocks have two nodes or more.
class OutlineBlocks : public Pass {
 public:
  absl::string_view name() const override { return "outline_blocks"; }
  absl::StatusOr<bool> Run(Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_OUTLINE_BLOCKS_H_
