#ifndef PLUGIN_CELLS_BUILD_CONTEXT_H_
#define PLUGIN_CELLS_BUILD_CONTEXT_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "passes/ir/graph.h"
#include "passes/outline.h"
#include "plugin/cells/cell_tree.h"

namespace pipeloom {

// The name of the input that BuildContext::Step makes.
inline constexpr char kStepInput[] = "step";

// What a graph is built for.
struct BuildPurpose {
  bool trains = false;          // cells that differ in training, as Dropout does, are as in training
  bool loss_is_a_mean = false;  // the losses of the micro-batches are averaged
};

// One build of a graph from cells: the graph so far, the cell whose Construct runs, and the first mistake. While it
// lives the parameters of `tree` stand for values of `graph`, so that a network is built by one thread at a time.
class BuildContext {
 public:
  // Those of `trained` that require a gradient become trainable parameters of the graph.
  BuildContext(const CellTree& tree, const std::vector<ParameterPtr>& trained, Graph& graph, BuildPurpose purpose = {});
  ~BuildContext();
  BuildContext(const BuildContext&) = delete;
  BuildContext& operator=(const BuildContext&) = delete;

  Var AddInput(absl::string_view hint, TensorType type, int batch_axis);
  std::vector<Var> Call(Cell& cell, const std::vector<Var>& inputs);
  // The result of a node of the current cell.
  Var Emit(absl::string_view op, const std::vector<Var>& operands, AttributeMap attributes);
  Var ParameterValue(const Parameter& parameter);
  // An input of the step, i64[], that stands after those of AddInput: how many steps of training came before.
  Var Step();
  // What each micro-batch divides its loss by, f32[], so that the mean of these is over all of the step's `labels` that
  // are not `ignore_index`. Refuses labels that are no input of the step, nor one reshaped.
  Var CountLabels(Var labels, int64_t ignore_index);
  // A number for one more random op of the current cell: a function of the cell's path and how many it had before.
  int64_t NextSite();
  // Keeps the first mistake, with the path of the current cell.
  Var Refuse(const absl::Status& why);

  const BuildPurpose& purpose() const { return purpose_; }
  const absl::Status& status() const { return status_; }
  // The nodes of each use of a cell that is to stay a call (Cell::SetLazyInline), the outermost only.
  const std::vector<Region>& lazy_inline() const { return lazy_inline_; }

 private:
  Var Handle(Value* value);

  const CellTree& tree_;
  absl::flat_hash_set<const Parameter*> trained_;
  Graph& graph_;
  const BuildPurpose purpose_;
  std::vector<std::string> cells_;  // paths of the cells whose Construct runs, outermost first
  absl::flat_hash_map<const Parameter*, Value*> values_;
  Value* step_ = nullptr;
  absl::flat_hash_map<std::string, int> sites_;  // of each cell so far
  absl::Status status_;
  std::vector<Region> lazy_inline_;
  bool in_lazy_inline_ = false;
};

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_BUILD_CONTEXT_H_
