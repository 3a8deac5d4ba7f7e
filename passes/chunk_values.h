#ifndef PASSES_CHUNK_VALUES_H_
#define PASSES_CHUNK_VALUES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/ir/module.h"

namespace pipeloom {

// Who makes and who reads the bytes of each value of one chunk, over the parts that join values by name and the views
// that show the same bytes under another type. A snapshot of a split module.
class ChunkValues {
 public:
  struct Reader {
    Part part;
    const Node* node;
    int group = 1;  // how many consecutive micro-batches it reads as one matrix
  };

  ChunkValues(const Module& module, ChunkId chunk);

  // The value whose bytes `value` shows: a node's result, an input, a parameter or a constant of the chunk.
  const Value* Root(const Value* value) const;
  // What reads the bytes of a root, in the order of parts and nodes; views are not readers, what reads them is.
  const std::vector<Reader>& ReadersOf(const Value* root) const;
  Part MadeIn(const Value* root) const { return made_in_.at(root); }
  Part LastReadIn(const Value* root) const;  // MadeIn where nothing reads it
  // How many consecutive micro-batches of the root are read as one matrix; 1 for most.
  int GroupOf(const Value* root) const;

 private:
  void AddCall(const Graph& body, Part part, const Node& call);

  absl::flat_hash_map<const Graph*, std::vector<int>> groups_;  // of the inputs of blocks
  absl::flat_hash_map<std::string, const Value*> results_;      // by name
  absl::flat_hash_map<const Value*, Part> made_in_;
  absl::flat_hash_map<const Value*, std::vector<Reader>> readers_;
};

// How many consecutive micro-batches of each input a body reads as one matrix; 1 for most.
std::vector<int> GroupsOfInputs(const Graph& body);

// Whether the node's result is its operand's bytes under another type.
bool IsView(const Node& node);

}  // namespace pipeloom

#endif  // PASSES_CHUNK_VALUES_H_
