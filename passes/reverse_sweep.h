#ifndef PASSES_REVERSE_SWEEP_H_
#define PASSES_REVERSE_SWEEP_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "passes/block_gradients.h"
#include "passes/ir/graph_builder.h"
#include "passes/ir/module.h"

namespace pipeloom {

// One backward sweep over the forward nodes of a graph: what each use of a value contributes to its gradient. All sums
// are binary nodes, in program order of the uses.
class ReverseSweep {
 public:
  // `active`: the values that a trained one reaches. `blocks` has the gradients of the blocks that the graph calls.
  ReverseSweep(Graph& graph, absl::flat_hash_set<const Value*> active, BlockGradients& blocks)
      : graph_(graph), active_(std::move(active)), blocks_(blocks) {}

  // What comes to the value from outside, from the last use to the first.
  void Seed(const Value* value, Value* gradient) { contributions_[value].push_back(gradient); }
  absl::Status Run();

  // From the last use to the first; {} where the value has none.
  const std::vector<Value*>& ContributionsTo(const Value* value) const;
  // The cell of the first node that reads the value on the way.
  const std::string& FirstUseCell(const Value* value) const { return first_use_cell_.at(value); }

  // Contributions are found from the last use to the first; they are added from the first to the last.
  static Value* SumInProgramOrder(GraphBuilder& builder, const std::vector<Value*>& contributions, const Value* of);

 private:
  absl::Status Visit(const Node& node);
  absl::Status VisitCall(Node& call);
  // The gradients of the results, as the block's gradient takes them.
  std::vector<Value*> GradientsOfResults(GraphBuilder& builder, const Node& call, BlockGradients::Wanted& wanted);

  Graph& graph_;
  const absl::flat_hash_set<const Value*> active_;
  BlockGradients& blocks_;
  absl::flat_hash_map<const Value*, int> uses_;  // by forward nodes
  absl::flat_hash_map<const Value*, std::vector<Value*>> contributions_;
  absl::flat_hash_map<const Value*, std::string> first_use_cell_;
};

// `from` and the results of floating-point type that it reaches.
absl::flat_hash_set<const Value*> ReachedValues(const Graph& graph, absl::flat_hash_set<const Value*> from,
                                                BlockGradients& blocks);

}  // namespace pipeloom

#endif  // PASSES_REVERSE_SWEEP_H_
