#ifndef PASSES_PARTS_H_
#define PASSES_PARTS_H_

#include "passes/ir/module.h"

namespace pipeloom {

// The graph of a chunk's part; an empty one is put in its place (chunk by chunk, F B W R U) where there is none.
Graph& FindOrAddPart(Module& module, ChunkId chunk, Part part);

// The graph of `chunk` that makes the value `name`; nullptr where there is none.
Graph* FindProducer(const Module& module, ChunkId chunk, absl::string_view name);

}  // namespace pipeloom

#endif  // PASSES_PARTS_H_
