// Random networks train to the same bits on one rank and on several, and to the numbers of plain loops in double.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "passes/assign_stages.h"
#include "passes/copy_parameter_nodes.h"
#include "passes/differentiate.h"
#include "passes/ir/op_table.h"
#include "tests/runtime/train.h"
#include "tests/testlib/random_graph.h"

namespace pipeloom {
namespace {

constexpr int kSeeds = 200;
constexpr int kSteps = 3;
constexpr int kMostStages = 4;

class RandomGraphsTest : public testing::TestWithParam<int> {
 protected:
  RandomGraphsTest()
      : graph_(MakeRandomGraph(static_cast<uint64_t>(GetParam()))),
        network_{graph_.text, graph_.cells, graph_.parameters},
        with_gradients_{graph_.text_with_gradients, graph_.cells, graph_.parameters} {}

  std::string Text() const {
    return absl::StrCat("seed ", GetParam(), ", ", graph_.micro_batches, " micro-batches of ", graph_.rows,
                        " rows, classes ", graph_.classes, ", cells ", absl::StrJoin(graph_.cells, " "), "\n",
                        graph_.text);
  }

  absl::StatusOr<Trained> Train(int stages, const std::string& schedule, std::vector<int> stage_of_cell) const {
    return TrainPipelined(with_gradients_, graph_.rows * graph_.micro_batches, kSteps, graph_.classes,
                          {stages, schedule, graph_.micro_batches, std::move(stage_of_cell)});
  }

  void ExpectSame(const Trained& one, int stages, const std::string& schedule, const std::vector<int>& stage_of_cell) {
    SCOPED_TRACE(absl::StrCat(schedule, ", stages ", absl::StrJoin(stage_of_cell, " ")));
    const auto other = Train(stages, schedule, stage_of_cell);
    ASSERT_TRUE(other.ok()) << other.status() << "\n" << Text();
    ASSERT_EQ(other->losses, one.losses) << Text();
    ASSERT_EQ(other->outputs, one.outputs) << Text();
    for (const auto& [name, values] : one.parameters) {
      ASSERT_EQ(other->parameters.at(name), values) << name << "\n" << Text();
    }
  }

  const RandomGraph graph_;
  const Network network_;
  const Network with_gradients_;
};

TEST_P(RandomGraphsTest, SameBitsOnSeveralRanks) {
  const auto one = Train(1, "gpipe", {});
  ASSERT_TRUE(one.ok()) << one.status() << "\n" << Text();
  RandomChoice choice(static_cast<uint64_t>(GetParam()));
  const int cells = static_cast<int>(graph_.cells.size());
  for (int stages = 1; stages <= kMostStages; ++stages) {
    const std::vector<int> in_order = RandomStages(choice, cells, stages);
    ExpectSame(*one, stages, "gpipe", in_order);
    ExpectSame(*one, stages, "1f1b", in_order);
    ExpectSame(*one, stages, "interleaved", RandomStagesWithReturns(choice, cells, stages));
    if (HasFailure()) return;
  }
}

float Largest(const std::vector<float>& values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

void ExpectNear(const std::vector<float>& ours, const std::vector<float>& wanted, const std::string& what) {
  ASSERT_EQ(ours.size(), wanted.size()) << what;
  const float tolerance = 1e-4f * Largest(wanted);
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(ours[i], wanted[i], tolerance) << what << " " << i;
}

TEST_P(RandomGraphsTest, NumbersOfPlainLoopsInDouble) {
  const Trained reference = TrainReference(network_, graph_.rows * graph_.micro_batches, kSteps, graph_.classes);
  const auto ours = TrainPipelined(network_, graph_.rows * graph_.micro_batches, kSteps, graph_.classes,
                                   {2, "1f1b", graph_.micro_batches});
  ASSERT_TRUE(ours.ok()) << ours.status() << "\n" << Text();
  SCOPED_TRACE(Text());
  ExpectNear(ours->losses, reference.losses, "losses");
  ExpectNear(ours->outputs, reference.outputs, "outputs");
  for (const auto& [name, values] : reference.parameters) ExpectNear(ours->parameters.at(name), values, name);
}

// What the graph of a seed has, after assign_stages.
std::set<std::string> Features(const Graph& graph, int stages) {
  std::set<std::string> features;
  std::map<std::pair<int, int>, std::set<const Value*>> travelling;  // by stages
  std::map<const Value*, std::set<int>> stages_of;                   // of parameters
  std::set<const Value*> updated;
  std::set<int> with_parameters;
  for (const auto& node : graph.nodes()) {
    for (const Value* written : WrittenOperands(*node)) updated.insert(written);
    if (node->info.phase != Phase::kForward) continue;
    const int reader = node->info.stage->value();
    if (node->op == "gather") features.insert("an embedding");
    if (node->info.cell.empty()) features.insert("a node outside all cells");
    for (const Value* operand : node->operands) {
      if (operand->kind == Value::Kind::kParameter) {
        stages_of[operand].insert(reader);
        with_parameters.insert(reader);
      }
      if (operand->producer == nullptr || *operand->producer->info.stage == *node->info.stage) continue;
      const int maker = operand->producer->info.stage->value();
      travelling[{maker, reader}].insert(operand);
      if (reader > maker + 1) features.insert("a value that goes over a stage");
      if (operand->type.rank() == 0) features.insert("a term of the loss that travels");
      if (operand->type.rank() == 3) features.insert("a turned value that travels");
      if (!Info(operand->type.dtype).floating) {
        features.insert(absl::StrCat("values of ", Info(operand->type.dtype).name, " that travel"));
      } else if (graph.Find(absl::StrCat("d.", operand->name)) == nullptr) {
        features.insert("floats that travel and have no gradient");
      }
    }
  }
  for (const auto& [ends, values] : travelling) {
    if (values.size() > 1) features.insert("several values from one stage to another");
  }
  for (const auto& [parameter, used_on] : stages_of) {
    if (used_on.size() > 1) features.insert("a shared parameter");
    if (!parameter->trainable) features.insert("a frozen parameter");
    if (parameter->trainable && updated.count(parameter) == 0)
      features.insert("a parameter that the loss does not see");
  }
  if (static_cast<int>(with_parameters.size()) < stages) features.insert("a stage without parameters");
  if (graph.outputs.size() > 1) features.insert("an output beside the loss");
  return features;
}

TEST(RandomGraphTest, HasWhatItIsFor) {
  std::map<std::string, int> seeds_with;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const RandomGraph graph = MakeRandomGraph(static_cast<uint64_t>(seed));
    RandomChoice choice(static_cast<uint64_t>(seed));
    Module module = BuildModule({graph.text, graph.cells, graph.parameters}, graph.rows * graph.micro_batches,
                                {kMostStages, "1f1b", graph.micro_batches,
                                 RandomStages(choice, static_cast<int>(graph.cells.size()), kMostStages)});
    ASSERT_TRUE(CopyParameterNodes().Run(module).ok());
    ASSERT_TRUE(Differentiate().Run(module).ok());
    ASSERT_TRUE(AssignStages().Run(module).ok());
    for (const std::string& feature : Features(*module.graphs[0], kMostStages)) ++seeds_with[feature];
    ++seeds_with[absl::StrCat(graph.micro_batches, " micro-batches")];
  }
  EXPECT_EQ(seeds_with.size(), 14u + 7u);
  for (const auto& [feature, seeds] : seeds_with) EXPECT_GE(seeds, kSeeds / 20) << feature;
}

INSTANTIATE_TEST_SUITE_P(Seed, RandomGraphsTest, testing::Range(0, kSeeds), testing::PrintToStringParamName());

}  // namespace
}  // namespace pipeloom
