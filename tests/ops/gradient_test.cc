#include <cmath>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "passes/ir/op_table.h"
#include "tests/ops/gradient_cases.h"
#include "tests/testlib/reference_ops.h"

namespace pipeloom {
namespace {

// Small enough that its square, the error of a central difference, is far below the tolerance; large enough that
// rounding is too.
constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-6;
// Values below this in size count as this in "relative": a sum of several terms may cancel.
constexpr double kFloor = 1e-2;

// Magnitudes from 0.3 to 2: away from relu's kink, and a divisor never near 0.
double Draw(std::mt19937& random) {
  const double magnitude = std::uniform_real_distribution<double>(0.3, 2.0)(random);
  return std::bernoulli_distribution(0.5)(random) ? magnitude : -magnitude;
}

// Whether the op is differentiable only where its operands are above 0.
bool WantsPositive(const std::string& op) { return op == "log" || op == "sqrt" || op == "rsqrt" || op == "pow"; }

RefTensor DrawTensor(const TensorType& type, int64_t classes, std::mt19937& random) {
  RefTensor tensor{type, {}};
  for (int64_t i = 0; i < type.num_elements(); ++i) {
    const bool label = !Info(type.dtype).floating;
    tensor.values.push_back(label ? std::uniform_int_distribution<int>(0, static_cast<int>(classes) - 1)(random)
                                  : Draw(random));
  }
  return tensor;
}

double Dot(const RefTensor& a, const RefTensor& b) {
  double sum = 0;
  for (size_t i = 0; i < a.values.size(); ++i) sum += a.values[i] * b.values[i];
  return sum;
}

// The node of a case, its operands and a gradient of its result, all graph inputs with drawn values.
struct Setting {
  explicit Setting(const GradientCase& c) {
    std::mt19937 random(7);
    std::vector<Value*> operands;
    for (size_t i = 0; i < c.operands.size(); ++i) {
      operands.push_back(graph.AddInput(absl::StrCat("x", i), c.operands[i], 0));
      const int64_t classes = c.operands[0].rank() == 0 ? 1 : c.operands[0].shape.back();
      RefTensor& input = inputs[operands.back()->name] = DrawTensor(c.operands[i], classes, random);
      if (!WantsPositive(c.op)) continue;
      for (double& value : input.values) value = std::abs(value);
    }
    node = *graph.AddNode(c.op, operands, c.attributes, {}, "y");
    gradient = graph.AddInput("dy", node->results[0]->type, 0);
    inputs["dy"] = DrawTensor(gradient->type, 1, random);
  }

  double Objective(const RefValues& at) const { return Dot(RunReferenceGraph(graph, at, {}).at("y"), at.at("dy")); }

  double CentralDifference(const std::string& operand, size_t element) const {
    RefValues moved = inputs;
    double& value = moved[operand].values[element];
    const double center = value;
    value = center + kStep;
    const double above = Objective(moved);
    value = center - kStep;
    return (above - Objective(moved)) / (2 * kStep);
  }

  Graph graph{"case"};
  Node* node = nullptr;
  Value* gradient = nullptr;
  RefValues inputs;
};

void ExpectGradientIsCentralDifference(const GradientCase& c, int operand) {
  Setting setting(c);
  std::vector<double> expected;
  const Value* of = setting.node->operands[operand];
  for (int64_t i = 0; i < of->type.num_elements(); ++i) expected.push_back(setting.CentralDifference(of->name, i));

  GraphBuilder builder(setting.graph, NodeInfo{"", {}, Phase::kBackward, Rate::kMicro});
  const Value* result = FindOp(c.op)->gradient(builder, *setting.node, operand, setting.gradient);
  ASSERT_NE(result, nullptr);
  ASSERT_EQ(result->type, of->type);
  const RefValues values = RunReferenceGraph(setting.graph, setting.inputs, {});
  const RefTensor& computed = values.at(result->name);
  ASSERT_EQ(computed.values.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(computed.values[i], expected[i], kTolerance * std::max(kFloor, std::abs(expected[i])))
        << "element " << i;
  }
}

class GradientTest : public testing::TestWithParam<GradientCase> {};

TEST_P(GradientTest, EqualsCentralDifferences) {
  const GradientCase& c = GetParam();
  for (int operand = 0; operand < static_cast<int>(c.operands.size()); ++operand) {
    SCOPED_TRACE(absl::StrCat(ToString(c), ", operand ", operand));
    if (c.operands[operand].dtype == DType::kFloat32) {
      ExpectGradientIsCentralDifference(c, operand);
    } else {
      Setting setting(c);
      GraphBuilder builder(setting.graph, {});
      EXPECT_EQ(FindOp(c.op)->gradient(builder, *setting.node, operand, setting.gradient), nullptr);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllCases, GradientTest, testing::ValuesIn(GradientCases()),
                         [](const testing::TestParamInfo<GradientCase>& info) {
                           return absl::StrCat(info.param.op, "_", info.index);
                         });

TEST(GradientCasesTest, CoverEveryDifferentiableOp) {
  std::set<std::string> covered;
  for (const GradientCase& c : GradientCases()) covered.insert(c.op);
  for (const OpDef& def : OpTable()) {
    if (def.gradient == nullptr) continue;
    EXPECT_EQ(covered.count(std::string(def.name)), 1u) << def.name << " has no case";
  }
}

// How many nodes the gradient of `operand` takes.
size_t GradientNodes(const GradientCase& c, int operand) {
  Setting setting(c);
  GraphBuilder builder(setting.graph, {});
  FindOp(c.op)->gradient(builder, *setting.node, operand, setting.gradient);
  return setting.graph.nodes().size() - 1;
}

TensorType F32(const Shape& shape) { return {DType::kFloat32, shape}; }

TEST(GradientNodesTest, AsFewAsPossible) {
  EXPECT_EQ(GradientNodes({"matmul", {F32({3, 2}), F32({4, 3})}, {{"transpose_a", true}, {"transpose_b", true}}}, 0),
            1u);
  EXPECT_EQ(GradientNodes({"add", {F32({8, 4}), F32({8, 4})}, {}}, 1), 0u);
  EXPECT_EQ(GradientNodes({"add", {F32({8, 4}), F32({4})}, {}}, 1), 1u);
  EXPECT_EQ(GradientNodes({"add", {F32({8, 4}), F32({1, 4})}, {}}, 1), 1u);
  EXPECT_EQ(GradientNodes({"add", {F32({2, 8, 4}), F32({8, 1})}, {}}, 1), 2u);
  EXPECT_EQ(GradientNodes({"reduce_sum", {F32({8, 4})}, {}}, 0), 1u);
  EXPECT_EQ(GradientNodes({"reduce_sum", {F32({8, 4})}, {{"axes", std::vector<int64_t>{0}}}}, 0), 1u);
  EXPECT_EQ(GradientNodes({"reduce_sum", {F32({8, 4})}, {{"axes", std::vector<int64_t>{1}}}}, 0), 2u);
}

TEST(GradientDeathTest, MatmulWithEpilogueIsRefused) {
  Setting setting({"matmul", {F32({2, 3}), F32({3, 4})}, {{"epilogue", std::string("relu")}}});
  GraphBuilder builder(setting.graph, {});
  EXPECT_DEATH(FindOp("matmul")->gradient(builder, *setting.node, 0, setting.gradient), "differentiate before fuse");
}

}  // namespace
}  // namespace pipeloom
