#ifndef PASSES_INLINE_CALLS_H_
#define PASSES_INLINE_CALLS_H_

#include "absl/container/flat_hash_set.h"
#include "passes/ir/module.h"

namespace pipeloom {

// Puts the nodes of their blocks in the place of `calls`, which are nodes of `graph`. Results keep their names.
void InlineCalls(const Module& module, Graph& graph, const absl::flat_hash_set<const Node*>& calls);

// Removes the blocks that no node calls.
void RemoveUncalledBlocks(Module& module);

}  // namespace pipeloom

#endif  // PASSES_INLINE_CALLS_H_
