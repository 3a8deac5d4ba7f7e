#ifndef PASSES_BLOCK_GRADIENTS_H_
#define PASSES_BLOCK_GRADIENTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "passes/ir/module.h"

namespace pipeloom {

// The gradients of a module's blocks, each made once for all calls that want the same of it:
//
//   %y, %a = call(%x, %w) {block="layer"}                // %a is given since a gradient reads it
//   %d.x, %d.a = call(%d.y, %a, %w) {block="layer.B"}    // backward, before the other ranks' work
//   %d.w = call(%x, %d.a) {block="layer.W"}              // backward, once for each use of a parameter
//
// Two blocks, since W (see split_stages) may run later than B; either may be missing.
class BlockGradients {
 public:
  explicit BlockGradients(Module& module);
  ~BlockGradients();

  // What a call wants of the gradient.
  struct Wanted {
    std::vector<int> gradients;  // how many addends of each result's gradient are given
    std::vector<bool> operands;  // whose gradient is wanted
    // Operands that other nodes read too: each use in the block contributes on its own, so that the order of a sum does
    // not depend on where a block begins. So does each use of a parameter, always.
    std::vector<bool> apart;
  };
  // To one operand; from the last use to the first.
  struct Contributions {
    std::vector<Value*> values;
    std::string first_use_cell;
  };

  // Adds the backward calls that belong to the forward `call` of `graph`. `gradients` are the addends of the results'
  // gradients, result by result, those of each from the last use to the first. One entry an operand.
  absl::StatusOr<std::vector<Contributions>> Differentiate(Graph& graph, Node& call,
                                                           const std::vector<Value*>& gradients, const Wanted& wanted);

  // Gives the call the results that its block has got since.
  void AddMissingResults(Graph& graph, Node& call) const;
  // Whether a node of the block reads the block's result `index`.
  bool ReadsOwnResult(const Node& call, size_t index) const;
  // The results that the `active` ones of the operands reach.
  std::vector<bool> ReachedResults(const Node& call, const absl::flat_hash_set<const Value*>& active);

 private:
  struct Gradient;

  absl::StatusOr<const Gradient*> FindOrMake(const Node& call, const Wanted& wanted);

  Module& module_;
  absl::flat_hash_map<std::string, std::unique_ptr<Gradient>> gradients_;  // by block and what is wanted
  absl::flat_hash_map<std::string, std::vector<bool>> reached_;            // by block and active operands
};

}  // namespace pipeloom

#endif  // PASSES_BLOCK_GRADIENTS_H_
