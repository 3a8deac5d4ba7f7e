#include "passes/ir/graph_builder.h"

#include <utility>

#include "kernels/base/status_macros.h"

namespace pipeloom {

Value* GraphBuilder::Emit(absl::string_view op, std::vector<Value*> operands, AttributeMap attributes,
                          absl::string_view hint) {
  absl::StatusOr<Node*> node = graph_.AddNode(op, std::move(operands), std::move(attributes), info_, hint);
  PIPELOOM_CHECK(node.ok(), node.status().message());
  return (*node)->results.empty() ? nullptr : (*node)->results[0];
}

Value* GraphBuilder::Scalar(float value) {
  return graph_.AddConstant("c", TensorType{DType::kFloat32, {}}, {static_cast<double>(value)});
}

}  // namespace pipeloom
