#ifndef PASSES_BUFFER_OVERLAP_H_
#define PASSES_BUFFER_OVERLAP_H_

#include "absl/status/status.h"
#include "passes/ir/module.h"

namespace pipeloom {

// Internal, naming both values, where a planned chunk writes a value over another one that is still read. Looks at the
// placements only, not at how they were found.
absl::Status CheckNoOverlap(const Module& module, ChunkId chunk);

// The same for what lives within a block, in the buffers of its frame.
absl::Status CheckNoOverlapInFrame(const Graph& body);

}  // namespace pipeloom

#endif  // PASSES_BUFFER_OVERLAP_H_
