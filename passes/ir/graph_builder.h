#ifndef PASSES_IR_GRAPH_BUILDER_H_
#define PASSES_IR_GRAPH_BUILDER_H_

#include <utility>
#include <vector>

#include "passes/ir/graph.h"

namespace pipeloom {

// Appends nodes that share one NodeInfo. For code whose types fit by construction (gradient rules, passes): a type
// error is a bug there and ends the process.
class GraphBuilder {
 public:
  GraphBuilder(Graph& graph, NodeInfo info) : graph_(graph), info_(std::move(info)) {}

  // The node's single result (nullptr for a node without results).
  Value* Emit(absl::string_view op, std::vector<Value*> operands, AttributeMap attributes = {},
              absl::string_view hint = "");
  Value* Scalar(float value);  // an f32[] constant

  Graph& graph() { return graph_; }
  NodeInfo& info() { return info_; }

 private:
  Graph& graph_;
  NodeInfo info_;
};

}  // namespace pipeloom

#endif  // PASSES_IR_GRAPH_BUILDER_H_
