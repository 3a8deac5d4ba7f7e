#ifndef PASSES_OUTLINE_H_
#define PASSES_OUTLINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/ir/module.h"

namespace pipeloom {

// Nodes of a graph that follow each other, as the cells that they come from: a candidate for a block.
struct Region {
  struct Member {
    size_t begin;  // positions of the first node and of the one after the last
    size_t end;
    std::string cell;
  };
  std::vector<Member> members;  // one directly after the other
  size_t begin() const { return members.front().begin; }
  size_t end() const { return members.back().end; }
};

// Whether the node can stand in a block: it runs forward, once a micro-batch, and reads no more than that.
bool CanStandInABlock(const Node& node);

// What a region computes, whatever its values, parameters and cells are called. A snapshot of a graph; each node is
// looked at once, so that two regions are compared without a look at their attributes and types.
class RegionCodes {
 public:
  explicit RegionCodes(const Graph& graph);

  // Equal for two regions exactly if one body serves both: same ops, attributes, types, wiring and inner cells.
  std::vector<int64_t> Encode(const Region& region);

 private:
  int64_t ConstantCode(const Value& constant);

  const Graph& graph_;
  std::vector<int64_t> signature_;  // of each node; equal for equal op, attributes, types, phase and rate
  absl::flat_hash_map<std::string, int64_t> inner_cells_;
  std::vector<const Value*> constants_;
};

// Makes blocks of regions, which do not overlap and whose nodes can all stand in one; those that compute the same share
// one:
//
//   %a = matmul(%x, %w1)  // net.0           block @net.0(%x) -> (%h) {
//   %h = relu(%a)         // net.0             %weight = param "weight"
//   %b = matmul(%h, %w2)  // net.1      ->     %a = matmul(%x, %weight)
//   %y = relu(%b)         // net.1             %h = relu(%a)
//                                            }
//                                            %h = call(%x, %w1) {block="net.0"}  // net.0
//                                            %y = call(%h, %w2) {block="net.0"}  // net.1
//
// A block has at least `fewest_calls` of them; other regions are left as they are. The block is named after its first
// cell, and gives what is read outside of any of its calls. Views of its results stay outside. Returns whether there is
// a block now.
bool OutlineRegions(Module& module, Graph& graph, const std::vector<Region>& regions, size_t fewest_calls);

}  // namespace pipeloom

#endif  // PASSES_OUTLINE_H_
