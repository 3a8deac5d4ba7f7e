// What a user may get wrong in cells, stages and batches, and what he is told.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugin/cells/build_module.h"
#include "plugin/cells/layers.h"
#include "plugin/cells/losses.h"
#include "plugin/cells/ops.h"

namespace pipeloom {
namespace {

using ::testing::HasSubstr;

class Network : public Cell {
 public:
  Network()
      : layer1_(AddCell<Dense>("layer1", 6, 4)),
        relu1_(AddCell<ReLU>("relu1")),
        layer2_(AddCell<Dense>("layer2", 4, 3)) {}
  Var Construct(Var x) override { return layer2_(relu1_(layer1_(x))); }
  Dense& layer1() { return layer1_; }
  Dense& layer2() { return layer2_; }

 private:
  Dense& layer1_;
  ReLU& relu1_;
  Dense& layer2_;
};

const std::vector<TensorType> kBatch = {{DType::kFloat32, {8, 6}}, {DType::kInt32, {8}}};

std::shared_ptr<Cell> WithLoss(std::shared_ptr<Cell> net) {
  return std::make_shared<WithLossCell>(std::move(net), std::make_shared<CrossEntropyLoss>());
}

std::string Message(const Pipeline& pipeline, const Optimizer& optimizer,
                    const std::vector<TensorType>& batch = kBatch) {
  const absl::StatusOr<CellTree> tree = CellTree::Of(*pipeline.net_with_loss);
  if (!tree.ok()) return std::string(tree.status().message());
  PipelineConfig config;
  config.stages = 2;
  return std::string(BuildTrainingModule(pipeline, *tree, optimizer, batch, config).status().message());
}

// With the network's own SGD.
std::string MessageOf(std::shared_ptr<Cell> net, int micro_size = 4, StageConfig stages = {},
                      const std::vector<TensorType>& batch = kBatch) {
  const SGD optimizer(net->TrainableParams());
  return Message(Pipeline(WithLoss(std::move(net)), micro_size, std::move(stages)), optimizer, batch);
}

TEST(Refusals, NothingIsRefusedWithoutAMistake) {
  EXPECT_EQ(MessageOf(std::make_shared<Network>(), 4, {{"_backbone", 0}, {"_backbone.layer2", 1}}), "");
}

TEST(Refusals, SizesBelowOneNameTheParameter) {
  for (const int64_t size : {-1, 0}) {
    auto net = std::make_shared<SequentialCell>();
    net->Append<Dense>(6, size);
    EXPECT_EQ(MessageOf(net), absl::StrCat("cell '_backbone.0': parameter '0.weight' has extents [", size,
                                           ", 6]; give sizes of 1 or more"));
  }
}

TEST(Refusals, UnknownPathsNameTheNearest) {
  EXPECT_EQ(MessageOf(std::make_shared<Network>(), 4, {{"_backbone.layr1", 0}}),
            "stage_config, stage 0: the network has no cell '_backbone.layr1'; the nearest of its paths: "
            "_backbone.layer1, _backbone.layer2, _backbone.relu1");
  EXPECT_THAT(MessageOf(std::make_shared<Network>(), 4, {{"layer2", 1}}),
              HasSubstr("the network has no cell 'layer2'; the nearest of its paths: _backbone.layer2, "));
}

TEST(Refusals, AnotherPathOfACellNamesTheFirst) {
  auto dense = std::make_shared<Dense>(6, 6);
  auto net = std::make_shared<SequentialCell>(std::vector<std::shared_ptr<Cell>>{dense, dense});
  EXPECT_THAT(MessageOf(net, 4, {{"_backbone.1", 1}}),
              HasSubstr("cell '_backbone.1' is the same cell as '_backbone.0' and goes by that path"));
}

TEST(Refusals, ContradictionsOfStages) {
  auto net = std::make_shared<Network>();
  net->layer1().SetPipelineStage(1);
  EXPECT_EQ(
      MessageOf(net, 4, {{"_backbone.layer1", 0}}),
      "stage_config gives cell '_backbone.layer1' stage 0, but its own pipeline stage is 1; give one of the two, or "
      "the same stage in both");
  EXPECT_EQ(MessageOf(net, 4, {{"_backbone.layer1", 1}}), "");
  EXPECT_EQ(MessageOf(net, 4, {{"_backbone", 0}}), "");  // the longer path of the cell's own wins
  EXPECT_EQ(MessageOf(std::make_shared<Network>(), 4, {{"_backbone.layer1", 0}, {"_backbone.layer1", 1}}),
            "stage_config gives cell '_backbone.layer1' twice, stage 0 and stage 1; keep one");
}

TEST(Refusals, StagesOfCellsKeepTheOrderAndAddTheCellsOwn) {
  auto net = std::make_shared<Network>();
  net->layer1().SetPipelineStage(0);
  net->layer2().SetPipelineStage(1);
  const std::shared_ptr<Cell> root = WithLoss(net);
  const absl::StatusOr<CellTree> tree = CellTree::Of(*root);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const auto stages = StagesOfCells(*tree, {{"_loss_fn", 1}, {"_backbone.layer2", 1}});
  ASSERT_TRUE(stages.ok()) << stages.status();
  const std::vector<std::pair<std::string, StageId>> expected = {
      {"_loss_fn", StageId(1)}, {"_backbone.layer2", StageId(1)}, {"_backbone.layer1", StageId(0)}};
  EXPECT_EQ(*stages, expected);
}

TEST(SpineCases, batch_not_divisible) {
  const std::vector<TensorType> batch = {{DType::kFloat32, {33, 6}}, {DType::kInt32, {33}}};
  EXPECT_EQ(MessageOf(std::make_shared<Network>(), 4, {}, batch),
            "batch 33 does not divide into 4 micro-batches; give a multiple of 4 or --micro_batches=3");
  EXPECT_EQ(MessageOf(std::make_shared<Network>(), 3),
            "batch 8 does not divide into 3 micro-batches; give a multiple of 3 or --micro_batches=2");
  EXPECT_EQ(MessageOf(std::make_shared<Network>(), 0), "micro_batches is 0; give at least 1");
}

TEST(Refusals, InputsThatDisagreeOrDoNotFit) {
  EXPECT_THAT(MessageOf(std::make_shared<Network>(), 4, {}, {{DType::kFloat32, {8, 6}}, {DType::kInt32, {12}}}),
              HasSubstr("input 1 is i32[12]; axis 0 is the batch: at least 1, and the same in all inputs (input 0 is "
                        "f32[8,6])"));
  EXPECT_THAT(MessageOf(std::make_shared<Network>(), 1, {}, {{DType::kFloat32, {0, 6}}, {DType::kInt32, {0}}}),
              HasSubstr("input 0 is f32[0,6]"));
  EXPECT_EQ(MessageOf(std::make_shared<Network>(), 4, {}, {{DType::kFloat32, {8, 5}}, {DType::kInt32, {8}}}),
            "cell '_backbone.layer1': a Dense(6, 4) takes values whose last extent is 6, not f32[2,5]");
  EXPECT_THAT(MessageOf(std::make_shared<Network>(), 4, {}, {{DType::kFloat32, {8}}, {DType::kInt32, {8}}}),
              HasSubstr("cell '_backbone.layer1': a Dense(6, 4) takes"));
  // The op table's own complaint, with the cell.
  EXPECT_THAT(MessageOf(std::make_shared<Network>(), 4, {}, {{DType::kFloat32, {8, 6}}, {DType::kFloat32, {8}}}),
              HasSubstr("cell '_loss_fn': labels_per_micro_batch: operand 0 f32[2], the labels, is not of dtype i32"));
  EXPECT_THAT(MessageOf(std::make_shared<Network>(), 4, {}, {{DType::kFloat32, {8, 6}}}),
              HasSubstr("the cell does not take 1 input"));
}

TEST(Refusals, OptimizersThatCannotBe) {
  auto net = std::make_shared<Network>();
  const Pipeline pipeline(WithLoss(net), 4);
  const std::vector<ParameterPtr> all = net->TrainableParams();
  EXPECT_THAT(Message(pipeline, SGD({}, 0.1)), HasSubstr("sgd has no parameters to train"));
  EXPECT_EQ(Message(pipeline, SGD(all, -0.1)), "sgd: lr is -0.1; give a finite one of at least 0");
  EXPECT_THAT(Message(pipeline, SGD(all, NAN)), HasSubstr("sgd: lr is nan"));
  EXPECT_THAT(Message(pipeline, SGD(all, INFINITY)), HasSubstr("sgd: lr is inf"));
  EXPECT_EQ(Message(pipeline, SGD(all, 0.1, 1.5)), "sgd: momentum is 1.5; give one in [0, 1)");
  EXPECT_THAT(Message(pipeline, SGD(all, 0.1, 0.0, 0.0, /*nesterov=*/true)),
              HasSubstr("nesterov is on and momentum is 0"));
  EXPECT_EQ(Message(pipeline, Adam(all, 0.1, 0.9, 1.0)), "adam: beta2 is 1; give one in [0, 1)");
  EXPECT_EQ(Message(pipeline, Adam(all, 0.1, 0.9, 0.9, 0.0)), "adam: eps is 0; give a finite one above 0");
  EXPECT_EQ(Message(pipeline, AdamW(all, 0.1, 0.9, 0.999, 1e-8, -0.5)),
            "adamw: weight_decay is -0.5; give a finite one of at least 0");
  EXPECT_THAT(Message(pipeline, SGD(Network().TrainableParams())),
              HasSubstr("parameter 0 of the optimizer belongs to no cell of the network"));
}

TEST(Refusals, ReductionsAreMeanOrSum) {
  auto net = std::make_shared<Network>();
  EXPECT_EQ(Message(Pipeline(WithLoss(net), 4, {}, "max"), SGD(net->TrainableParams())),
            "loss_reduction is 'max'; choose one of mean, sum");
}

TEST(Refusals, ANetworkWithoutALoss) {
  auto net = std::make_shared<Network>();
  const Pipeline pipeline(net, 4);
  EXPECT_THAT(Message(pipeline, SGD(net->TrainableParams()), {kBatch[0]}), HasSubstr("wrap it in a WithLossCell"));
  const absl::StatusOr<CellTree> tree = CellTree::Of(*net);
  ASSERT_TRUE(tree.ok());
  EXPECT_THAT(std::string(BuildInferenceModule(pipeline, *tree, {kBatch[0]}, PipelineConfig()).status().message()),
              HasSubstr("the network is looked for in cell '_backbone', where WithLossCell has it"));
}

// Cells with a mistake in them.

class Duplicate : public Cell {
 public:
  explicit Duplicate(const std::string& name) {
    AddParameter("w", {1}, Ones());
    AddCell<ReLU>(name);
  }
  Var Construct(Var x) override { return x; }
};

TEST(Refusals, NamesThatAreTakenOrCannotBe) {
  EXPECT_THAT(MessageOf(std::make_shared<Duplicate>("w")),
              HasSubstr("cell '_backbone' has two children or parameters named 'w'; rename one"));
  EXPECT_THAT(MessageOf(std::make_shared<Duplicate>("a.b")), HasSubstr("named 'a.b'; a name has at least one"));
  EXPECT_THAT(MessageOf(std::make_shared<Duplicate>("")), HasSubstr("named ''; a name has at least one"));
}

TEST(Refusals, ParametersThatComeToOneName) {
  // WithLossCell puts no name of its own before those of its children.
  const Pipeline pipeline(std::make_shared<WithLossCell>(std::make_shared<Dense>(6, 3), std::make_shared<Dense>(3, 1)),
                          1);
  EXPECT_THAT(Message(pipeline, SGD(pipeline.net_with_loss->TrainableParams())),
              HasSubstr("cell '_backbone' and cell '_loss_fn' both have a parameter that comes to the name 'weight'"));
}

class CallsAStranger : public Cell {
 public:
  Var Construct(Var x) override {
    ReLU stranger;
    return stranger(x);
  }
};

class UsesAForeignParameter : public Cell {
 public:
  Var Construct(Var x) override { return ops::Add(x, foreign_.weight); }

 private:
  Dense foreign_{6, 6};  // not added
};

class ReturnsNothing : public Cell {
 public:
  Var Construct(Var) override { return Var(); }
};

class WrongAxis : public Cell {
 public:
  Var Construct(Var x) override { return ops::Reshape(x, {x.dim(5), -1}); }
};

class BadReshape : public Cell {
 public:
  Var Construct(Var x) override { return ops::Reshape(x, {5, -1}); }
};

class SecondMistake : public Cell {
 public:
  Var Construct(Var x) override {
    const Var first = x.Refuse("the first");
    ops::MatMul(first, x).Refuse("the second");
    return ops::Relu(first);
  }
};

// A chain of a cell and a Dense that gives it something to train.
std::string MessageOfPart(std::shared_ptr<Cell> part) {
  return MessageOf(std::make_shared<SequentialCell>(
      std::vector<std::shared_ptr<Cell>>{std::move(part), std::make_shared<Dense>(6, 3)}));
}

TEST(Refusals, CellsWithAMistakeAreNamed) {
  EXPECT_THAT(MessageOfPart(std::make_shared<CallsAStranger>()),
              HasSubstr("cell '_backbone.0': a cell is called that is no child of any cell of the network"));
  EXPECT_THAT(MessageOfPart(std::make_shared<UsesAForeignParameter>()),
              HasSubstr("cell '_backbone.0': operand 1 of add has no value; is it a parameter that no cell"));
  EXPECT_EQ(MessageOfPart(std::make_shared<ReturnsNothing>()), "cell '_backbone.0': result 0 has no value");
  EXPECT_EQ(MessageOfPart(std::make_shared<WrongAxis>()), "cell '_backbone.0': a value of type f32[2,6] has no axis 5");
  EXPECT_EQ(MessageOfPart(std::make_shared<BadReshape>()),
            "cell '_backbone.0': f32[2,6] does not reshape to [5, -1]; its 12 elements are no multiple of the extents "
            "given");
  EXPECT_EQ(MessageOfPart(std::make_shared<SecondMistake>()), "cell '_backbone.0': the first");
}

TEST(Refusals, ABuildCanFollowAFailedOne) {
  auto net = std::make_shared<Network>();
  const Pipeline pipeline(WithLoss(net), 4);
  const SGD optimizer(net->TrainableParams());
  EXPECT_NE(Message(pipeline, optimizer, {kBatch[0]}), "");
  EXPECT_EQ(Message(pipeline, optimizer), "");
}

}  // namespace
}  // namespace pipeloom
