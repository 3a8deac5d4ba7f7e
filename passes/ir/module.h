#ifndef PASSES_IR_MODULE_H_
#define PASSES_IR_MODULE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "passes/ir/graph.h"

namespace pipeloom {

// What the user asked of the pipeline: the one place of these defaults.
struct PipelineConfig {
  int stages = 1;
  int micro_batches = 1;
  std::string schedule = "1f1b";
  int threads = 1;  // compute threads a rank
  // Chunks of each rank: chunk c is on stage c % stages. assign_stages counts them.
  int chunks_per_rank = 1;
  // Whether deal_cells chooses the stages, where the user only asked for a schedule with several chunks a rank.
  bool deal_cells = false;
  // Cell path -> stage, in the order given; a path covers its subtree, the longest path wins.
  std::vector<std::pair<std::string, StageId>> stage_of_cell;

  int chunks() const { return stages * chunks_per_rank; }
  StageId StageOf(ChunkId chunk) const { return StageId(chunk.value() % stages); }
};

// A program: the step graph before split_stages, one graph a chunk and part after it. Passes see all of it, so that a
// pass needs no options of its own.
//
// `blocks` are bodies that nodes `call` by name: what several cells compute alike stands there once. The operands of a
// call are the body's inputs, then its parameters; its results are the body's outputs. The nodes of a body have the
// phase of its calls and no stage, and a cell relative to that of the call (CellInCall).
struct Module {
  PipelineConfig config;
  std::vector<std::unique_ptr<Graph>> blocks;
  std::vector<std::unique_ptr<Graph>> graphs;

  // The graph of a chunk's part; nullptr where the chunk has none.
  Graph* Find(ChunkId chunk, Part part) const {
    for (const auto& graph : graphs) {
      if (graph->chunk == chunk && graph->part == part) return graph.get();
    }
    return nullptr;
  }

  // The block of that name; nullptr where there is none.
  Graph* FindBlock(absl::string_view name) const {
    for (const auto& block : blocks) {
      if (block->name() == name) return block.get();
    }
    return nullptr;
  }
};

inline constexpr absl::string_view kCall = "call";
// The body of a node that is a call.
inline Graph* BodyOf(const Module& module, const Node& call) {
  return module.FindBlock(GetString(call.attributes, "block", ""));
}

// The path of a cell in a body, for one call of it. A call covers one cell, `call.info.cell`, and paths in its body are
// relative to that; or it covers several that follow each other, listed in its attribute `cells` with commas between
// them, and paths in its body begin with the number of one: "1.dense".
std::string CellInCall(const Node& call, absl::string_view cell);
// The cells that a call covers.
std::vector<std::string> CellsOfCall(const Node& call);

}  // namespace pipeloom

#endif  // PASSES_IR_MODULE_H_
