// What fuse makes computes what was there before, by the reference in double, for every mix of epilogue steps.

#include "passes/fuse.h"

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testlib/reference_ops.h"

namespace pipeloom {
namespace {

enum class Side { kAbsent, kLeft, kRight };
using Mix = std::tuple<Side, Side, std::string>;  // bias, residual, activation

TensorType F32(const Shape& shape) { return {DType::kFloat32, shape}; }

// Different, of both signs, and no two sums alike.
RefTensor Numbers(const TensorType& type, double phase) {
  RefTensor tensor{type, {}};
  for (int64_t i = 0; i < type.num_elements(); ++i) {
    tensor.values.push_back(std::sin(phase + 1.7 * static_cast<double>(i)));
  }
  return tensor;
}

class FuseTest : public testing::TestWithParam<Mix> {
 protected:
  Value* Add(Graph& graph, Side side, Value* to, Value* operand) {
    if (side == Side::kAbsent) return to;
    const std::vector<Value*> operands = {side == Side::kLeft ? operand : to, side == Side::kLeft ? to : operand};
    return (*graph.AddNode("add", operands, {}, {}))->results[0];
  }
};

TEST_P(FuseTest, ComputesTheSameInOneNode) {
  const auto& [bias, residual, activation] = GetParam();
  Module module;
  module.graphs.push_back(std::make_unique<Graph>("step"));
  Graph& graph = *module.graphs[0];
  const std::vector<TensorType> types = {F32({3, 4}), F32({4, 2}), F32({2}), F32({3, 2})};
  std::vector<Value*> inputs;
  RefValues values;
  for (size_t i = 0; i < types.size(); ++i) {
    inputs.push_back(graph.AddInput(absl::StrCat("in", i), types[i], {}));
    values[inputs[i]->name] = Numbers(types[i], static_cast<double>(i));
  }
  Value* y = (*graph.AddNode("matmul", {inputs[0], inputs[1]}, {}, {}))->results[0];
  y = Add(graph, bias, y, inputs[2]);
  y = Add(graph, residual, y, inputs[3]);
  if (!activation.empty()) y = (*graph.AddNode(activation, {y}, {}, {}))->results[0];
  graph.outputs.push_back({y, "concat"});
  const std::string name = y->name;
  const size_t nodes = graph.nodes().size();

  const RefTensor before = RunReferenceGraph(graph, values, {}).at(name);
  const absl::StatusOr<bool> changed = Fuse().Run(module);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(*changed, nodes > 1);
  EXPECT_EQ(graph.nodes().size(), 1u);
  ASSERT_EQ(graph.outputs[0].value->name, name);
  EXPECT_EQ(RunReferenceGraph(graph, values, {}).at(name).values, before.values);
}

INSTANTIATE_TEST_SUITE_P(AllMixes, FuseTest,
                         testing::Combine(testing::Values(Side::kAbsent, Side::kLeft, Side::kRight),
                                          testing::Values(Side::kAbsent, Side::kLeft, Side::kRight),
                                          testing::Values("", "relu", "gelu", "tanh", "sigmoid")));

}  // namespace
}  // namespace pipeloom
