// Networks of cells, trained: against closed formulas, and against themselves on other stages.
#include "plugin/cells/trainer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/file_io.h"
#include "plugin/cells/layers.h"
#include "plugin/cells/losses.h"
#include "plugin/cells/ops.h"

namespace pipeloom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Tensor Floats(Shape shape, const std::vector<float>& values) {
  Tensor tensor(TensorType{DType::kFloat32, std::move(shape)});
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

std::vector<float> ValuesOf(const Tensor& tensor) {
  return std::vector<float>(tensor.data<float>(), tensor.data<float>() + tensor.type().num_elements());
}

TrainerOptions Quiet(int stages, const std::string& schedule = "1f1b") {
  TrainerOptions options;
  options.stages = stages;
  options.schedule = schedule;
  options.table = nullptr;
  return options;
}

std::unique_ptr<Trainer> Make(const Pipeline& pipeline, const Optimizer& optimizer, const TrainerOptions& options) {
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(pipeline, optimizer, options);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return trainer.ok() ? *std::move(trainer) : nullptr;
}

std::shared_ptr<SequentialCell> TwoUnitWeights() {
  DenseOptions options;
  options.has_bias = false;
  options.weight_init = Ones();
  auto net = std::make_shared<SequentialCell>();
  net->Append<Dense>(1, 1, options).SetPipelineStage(0);
  net->Append<Dense>(1, 1, options).SetPipelineStage(1);
  return net;
}

// d/dw of (w1 w2 x)^2 is 2 for w1 = w2 = x = 1: both weights become 1 - 0.1 * 2.
TEST(Trainer, mean_of_two_micro_batches_one_by_one) {
  for (int stages : {1, 2}) {
    const std::shared_ptr<SequentialCell> net = TwoUnitWeights();
    if (stages == 1) net->children()[1].cell->SetPipelineStage(0);
    const Pipeline pipeline(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), /*micro_size=*/2);
    const std::unique_ptr<Trainer> trainer = Make(pipeline, SGD(net->TrainableParams(), 0.1), Quiet(stages));
    Tensor x = Floats({2, 1}, {1, 1});
    Tensor target = Floats({2, 1}, {0, 0});
    const absl::StatusOr<float> loss = trainer->Step({x.view(), target.view()});
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_EQ(*loss, 1.0f);
    const absl::StatusOr<TensorMap> weights = trainer->ReadParameters();
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(ValuesOf(weights->at("0.weight")), std::vector<float>{0.8f});
    EXPECT_EQ(ValuesOf(weights->at("1.weight")), std::vector<float>{0.8f});
  }
}

TEST(Trainer, SumIsWhatIsMinimisedWhereItIsAskedFor) {
  const std::shared_ptr<SequentialCell> net = TwoUnitWeights();
  const Pipeline pipeline(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), 2, {}, "sum");
  const std::unique_ptr<Trainer> trainer = Make(pipeline, SGD(net->TrainableParams(), 0.1), Quiet(2));
  Tensor x = Floats({2, 1}, {1, 1});
  Tensor target = Floats({2, 1}, {0, 0});
  const absl::StatusOr<float> loss = trainer->Step({x.view(), target.view()});
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, 2.0f);
  EXPECT_FLOAT_EQ(ValuesOf(trainer->ReadParameters()->at("0.weight"))[0], 0.6f);
}

// A network whose first and last layer share a weight, x W -> tanh -> W.
class Tied : public Cell {
 public:
  Tied() : first_(AddCell<Dense>("first", 4, 4)), tanh_(AddCell<Tanh>("tanh")), last_(AddCell<Dense>("last", 4, 4)) {
    last_.weight = first_.weight;
  }
  Var Construct(Var x) override { return last_(tanh_(first_(x))); }

 private:
  Dense& first_;
  Tanh& tanh_;
  Dense& last_;
};

struct Trained {
  std::vector<float> losses;
  std::string weights;  // the bytes of the checkpoint
};

Trained TrainTied(const StageConfig& stage_config, int stages, const std::string& schedule) {
  auto net = std::make_shared<Tied>();
  net->SetSeed(5);
  const Pipeline pipeline(std::make_shared<WithLossCell>(net, std::make_shared<CrossEntropyLoss>()), 4, stage_config);
  const std::unique_ptr<Trainer> trainer =
      Make(pipeline, SGD(net->TrainableParams(), 0.3, 0.9), Quiet(stages, schedule));
  Tensor x(TensorType{DType::kFloat32, {8, 4}});
  Tensor labels(TensorType{DType::kInt32, {8}});
  const CounterRandom random(0, "x");
  for (int i = 0; i < 32; ++i) x.data<float>()[i] = static_cast<float>(random.Normal(i));
  for (int i = 0; i < 8; ++i) labels.data<int32_t>()[i] = i % 4;
  Trained trained;
  for (int step = 0; step < 20; ++step) {
    const absl::StatusOr<float> loss = trainer->Step({x.view(), labels.view()});
    EXPECT_TRUE(loss.ok()) << loss.status();
    if (!loss.ok()) return trained;
    trained.losses.push_back(*loss);
  }
  const std::string path = testing::TempDir() + "/tied";
  EXPECT_TRUE(trainer->SaveCheckpoint(path).ok());
  trained.weights = *ReadFile(path);
  return trained;
}

TEST(Trainer, ATiedWeightTrainsTheSameOnAllStagesAndSchedules) {
  const Trained one = TrainTied({}, 1, "1f1b");
  ASSERT_EQ(one.losses.size(), 20u);
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (const char* schedule : {"1f1b", "gpipe"}) {
    const Trained two = TrainTied({{"_backbone", 0}, {"_backbone.last", 1}}, 2, schedule);
    EXPECT_EQ(two.losses, one.losses) << schedule;
    EXPECT_EQ(two.weights, one.weights) << schedule;
    const Trained three =
        TrainTied({{"_backbone.first", 0}, {"_backbone.tanh", 1}, {"_backbone.last", 2}}, 3, schedule);
    EXPECT_EQ(three.losses, one.losses) << schedule;
    EXPECT_EQ(three.weights, one.weights) << schedule;
  }
}

// A network on two stages, with a parameter that nothing uses.
class Affine : public Cell {
 public:
  Affine() : first_(AddCell<Dense>("first", 3, 3)), last_(AddCell<Dense>("last", 3, 2)) {
    AddCell<Dense>("unused", 2, 2);
    first_.SetPipelineStage(0);
    last_.SetPipelineStage(1);
  }
  Var Construct(Var x) override { return last_(first_(x)); }

 private:
  Dense& first_;
  Dense& last_;
};

struct AffineTrainer {
  explicit AffineTrainer(const TrainerOptions& options = Quiet(2)) {
    net->SetSeed(2);
    trainer = Make(Pipeline(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), 2),
                   SGD(net->TrainableParams(), 0.1), options);
  }
  absl::StatusOr<float> Step() { return trainer->Step({x.view(), target.view()}); }
  std::vector<float> Parameter(const std::string& name) { return ValuesOf(trainer->ReadParameters()->at(name)); }

  std::shared_ptr<Affine> net = std::make_shared<Affine>();
  std::unique_ptr<Trainer> trainer;
  Tensor x = Floats({4, 3}, {1, 2, 3, -1, 0, 1, 0.5f, 0.25f, 2, -2, 1, 0});
  Tensor target = Floats({4, 2}, {1, 0, 0, 1, 1, 0, 0, 1});
};

TEST(Trainer, PredictsBeforeTrainingAndFollowsIt) {
  AffineTrainer affine;
  absl::StatusOr<std::vector<Tensor>> outputs = affine.trainer->Predict({affine.x.view()});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->size(), 1u);
  EXPECT_EQ((*outputs)[0].type().ToString(), "f32[4,2]");
  const auto loss_of = [&](const Tensor& output) {
    double sum = 0.0;
    for (int i = 0; i < 8; ++i) sum += std::pow(output.data<float>()[i] - affine.target.data<float>()[i], 2);
    return sum / 8;
  };
  for (int step = 0; step < 3; ++step) {
    const double predicted = loss_of((*outputs)[0]);
    const absl::StatusOr<float> loss = affine.Step();
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_NEAR(*loss, predicted, 1e-5);
    outputs = affine.trainer->Predict({affine.x.view()});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_LT(loss_of((*outputs)[0]), predicted);
  }
}

TEST(Trainer, ACheckpointContinuesWhereItWasSaved) {
  const std::string path = testing::TempDir() + "/affine";
  AffineTrainer first;
  ASSERT_TRUE(first.Step().ok());
  ASSERT_TRUE(first.trainer->SaveCheckpoint(path).ok());
  const absl::StatusOr<float> next = first.Step();
  ASSERT_TRUE(next.ok()) << next.status();

  AffineTrainer loaded_before_the_first_step;
  ASSERT_TRUE(loaded_before_the_first_step.trainer->LoadCheckpoint(path).ok());
  EXPECT_EQ(*loaded_before_the_first_step.Step(), *next);

  AffineTrainer loaded_later;
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(loaded_later.Step().ok());
  ASSERT_TRUE(loaded_later.trainer->LoadCheckpoint(path).ok());
  EXPECT_EQ(*loaded_later.Step(), *next);
}

TEST(Trainer, ACheckpointHasAllParametersAndNothingElse) {
  AffineTrainer affine;
  const std::vector<float> unused = affine.Parameter("unused.weight");
  ASSERT_TRUE(affine.Step().ok());
  const absl::StatusOr<TensorMap> values = affine.trainer->ReadParameters();
  ASSERT_TRUE(values.ok()) << values.status();
  std::vector<std::string> names;
  for (const auto& [name, value] : *values) names.push_back(name);
  EXPECT_THAT(names, testing::ElementsAre("first.bias", "first.weight", "last.bias", "last.weight", "unused.bias",
                                          "unused.weight"));
  EXPECT_EQ(ValuesOf(values->at("unused.weight")), unused);
}

TEST(Trainer, RefusesACheckpointOfAnotherNetworkAndChangesNothing) {
  AffineTrainer affine;
  ASSERT_TRUE(affine.Step().ok());
  const std::vector<float> before = affine.Parameter("first.weight");
  const auto refusal = [&](const std::string& change_name, const std::string& to, Shape shape) {
    TensorMap values = *affine.trainer->ReadParameters();
    std::fill_n(values.at("first.weight").data<float>(), 9, 7.0f);
    values.erase(change_name);
    if (!to.empty()) values.emplace(to, Tensor(TensorType{DType::kFloat32, std::move(shape)}));
    const std::string path = testing::TempDir() + "/other";
    EXPECT_TRUE(WriteSafetensors(path, values).ok());
    std::string message(affine.trainer->LoadCheckpoint(path).message());
    EXPECT_THAT(message, HasSubstr(path));
    return message;
  };
  EXPECT_THAT(refusal("last.bias", "", {}), HasSubstr("there is no value for parameter 'last.bias'"));
  EXPECT_THAT(refusal("last.bias", "last.bia", {2}),
              HasSubstr("the network has no parameter 'last.bia'; the nearest is 'last.bias'"));
  EXPECT_THAT(refusal("last.bias", "last.bias", {3}),
              HasSubstr("parameter 'last.bias' is f32[2], but its new value is f32[3]"));
  EXPECT_EQ(affine.Parameter("first.weight"), before);
}

TEST(Trainer, frozen_first_stage) {
  const auto train = [](int stages) {
    auto net = std::make_shared<Affine>();
    net->children()[0].cell->SetRequiresGrad(false);
    if (stages == 1) net->children()[1].cell->SetPipelineStage(0);
    const std::unique_ptr<Trainer> trainer =
        Make(Pipeline(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), 2),
             Adam(net->TrainableParams(), 0.1), Quiet(stages));
    AffineTrainer data;
    const std::vector<float> frozen = ValuesOf(trainer->ReadParameters()->at("first.weight"));
    for (int step = 0; step < 5; ++step) {
      EXPECT_TRUE(trainer->Step({data.x.view(), data.target.view()}).ok());
    }
    EXPECT_EQ(ValuesOf(trainer->ReadParameters()->at("first.weight")), frozen);
    return ValuesOf(trainer->ReadParameters()->at("last.weight"));
  };
  EXPECT_EQ(train(2), train(1));
}

TEST(Trainer, PrintsTheTableOfStagesOnce) {
  std::ostringstream table;
  TrainerOptions options = Quiet(2);
  options.table = &table;
  AffineTrainer affine(options);
  ASSERT_TRUE(affine.Step().ok());
  const std::string text = table.str();
  EXPECT_THAT(text, AllOf(HasSubstr("_backbone.first"), HasSubstr("_backbone.last"), HasSubstr("first.weight"),
                          HasSubstr("last.bias")));
  ASSERT_TRUE(affine.Step().ok());
  ASSERT_TRUE(affine.trainer->Predict({affine.x.view()}).ok());
  EXPECT_EQ(table.str(), text);
}

TEST(Trainer, TheTableHasTheCellsThatAreFusedIntoOthers) {
  auto net = std::make_shared<SequentialCell>();
  net->Append<Dense>(1, 1);
  net->Append<ReLU>();
  net->Append<Dense>(1, 1);
  std::ostringstream table;
  TrainerOptions options = Quiet(1);
  options.table = &table;
  const auto trainer = Make(Pipeline(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), 1),
                            SGD(net->TrainableParams(), 0.1), options);
  Tensor x = Floats({2, 1}, {1, 2});
  ASSERT_TRUE(trainer->CompileStep({x.view(), x.view()}).ok());
  EXPECT_THAT(table.str(), HasSubstr("_backbone.0, _backbone.1, _backbone.2, _loss_fn"));
}

TEST(Trainer, DumpsEachProgramIntoAFolderOfItsOwn) {
  TrainerOptions options = Quiet(2);
  options.dump_dir = testing::TempDir() + "/dump";
  AffineTrainer affine(options);
  ASSERT_TRUE(affine.Step().ok());
  ASSERT_TRUE(affine.trainer->Predict({affine.x.view()}).ok());
  for (const auto& [program, schedule] : {std::pair("step_0", "1f1b"), std::pair("predict_0", "forward")}) {
    const absl::StatusOr<std::string> text = ReadFile(options.dump_dir + "/" + program + "/15_plan_buffers.txt");
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_THAT(*text, HasSubstr(schedule));
    EXPECT_TRUE(ReadFile(options.dump_dir + "/" + program + "/rank_programs.txt").ok());
  }
}

TEST(Trainer, PredictsWhereTheLossIsAloneOnTheLastStage) {
  DenseOptions ones;
  ones.has_bias = false;
  ones.weight_init = Ones();
  auto net = std::make_shared<SequentialCell>();
  net->Append<Dense>(2, 1, ones).SetPipelineStage(0);
  auto loss = std::make_shared<MSELoss>();
  loss->SetPipelineStage(1);
  const auto trainer =
      Make(Pipeline(std::make_shared<WithLossCell>(net, loss), 1), SGD(net->TrainableParams(), 0.1), Quiet(2));
  Tensor x = Floats({2, 2}, {1, 2, 3, 4});
  Tensor target = Floats({2, 1}, {3, 7});
  const absl::StatusOr<float> step = trainer->Step({x.view(), target.view()});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(*step, 0.0f);
  const absl::StatusOr<std::vector<Tensor>> outputs = trainer->Predict({x.view()});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(ValuesOf((*outputs)[0]), (std::vector<float>{3, 7}));
}

// Six cells that are given no stage: dealt out to the stages in turn, for training and prediction alike.
std::shared_ptr<SequentialCell> SixCells() {
  auto net = std::make_shared<SequentialCell>();
  for (int i = 0; i < 3; ++i) {
    net->Append<Dense>(4, 4);
    net->Append<Tanh>();
  }
  return net;
}

TEST(Trainer, InterleavedDealsCellsThatHaveNoStage) {
  Tensor x = Floats({6, 4}, std::vector<float>(24, 0.5f));
  Tensor target = Floats({6, 4}, std::vector<float>(24, 0.25f));
  std::vector<float> losses;
  std::vector<float> outputs;
  for (const auto& [stages, schedule] : {std::pair(1, "1f1b"), std::pair(1, "interleaved"), std::pair(2, "interleaved"),
                                         std::pair(3, "interleaved"), std::pair(4, "interleaved")}) {
    SCOPED_TRACE(stages);
    const std::shared_ptr<SequentialCell> net = SixCells();
    const Pipeline pipeline(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), 3);
    const std::unique_ptr<Trainer> trainer =
        Make(pipeline, SGD(net->TrainableParams(), 0.1, 0.9), Quiet(stages, schedule));
    std::vector<float> seen;
    for (int step = 0; step < 3; ++step) {
      const absl::StatusOr<float> loss = trainer->Step({x.view(), target.view()});
      ASSERT_TRUE(loss.ok()) << loss.status();
      seen.push_back(*loss);
    }
    const absl::StatusOr<std::vector<Tensor>> predicted = trainer->Predict({x.view()});
    ASSERT_TRUE(predicted.ok()) << predicted.status();
    if (losses.empty()) {
      losses = seen;
      outputs = ValuesOf((*predicted)[0]);
    }
    EXPECT_EQ(seen, losses);
    EXPECT_EQ(ValuesOf((*predicted)[0]), outputs);
  }
}

// A prediction has no dropout, and must find every parameter where training updates it.
TEST(Trainer, PredictionFollowsTrainingWhereCellsAreDealtOut) {
  Tensor x = Floats({6, 4}, std::vector<float>(24, 0.5f));
  Tensor target = Floats({6, 4}, std::vector<float>(24, 0.25f));
  std::vector<std::vector<float>> one;
  for (int stages : {1, 2}) {
    auto net = std::make_shared<SequentialCell>();
    net->Append<Dropout>(0.5);
    for (int i = 0; i < 4; ++i) net->Append<Dense>(4, 4);
    const Pipeline pipeline(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), 3);
    const std::unique_ptr<Trainer> trainer =
        Make(pipeline, SGD(net->TrainableParams(), 0.1), Quiet(stages, "interleaved"));
    std::vector<std::vector<float>> seen;
    for (int step = 0; step < 3; ++step) {
      const absl::StatusOr<float> loss = trainer->Step({x.view(), target.view()});
      ASSERT_TRUE(loss.ok()) << loss.status();
      const absl::StatusOr<std::vector<Tensor>> predicted = trainer->Predict({x.view()});
      ASSERT_TRUE(predicted.ok()) << predicted.status();
      seen.push_back(ValuesOf((*predicted)[0]));
    }
    const absl::StatusOr<TensorMap> weights = trainer->ReadParameters();
    ASSERT_TRUE(weights.ok()) << weights.status();
    for (const auto& [name, weight] : *weights) seen.push_back(ValuesOf(weight));
    if (stages == 1) one = seen;
    EXPECT_EQ(seen, one) << stages;
  }
}

TEST(Trainer, InterleavedRefusesMoreStagesThanCells) {
  const std::shared_ptr<SequentialCell> net = SixCells();
  const Pipeline pipeline(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), 3);
  const std::unique_ptr<Trainer> trainer = Make(pipeline, SGD(net->TrainableParams(), 0.1), Quiet(7, "interleaved"));
  Tensor x = Floats({6, 4}, std::vector<float>(24));
  EXPECT_THAT(std::string(trainer->Step({x.view(), x.view()}).status().message()),
              HasSubstr("the network has 6 cells (_backbone.0, _backbone.1, _backbone.2, _backbone.3, _backbone.4, "
                        "_backbone.5) for 7 stages"));
}

TEST(Trainer, RefusesWrongInputsAndGoesOn) {
  AffineTrainer affine;
  Tensor x3 = Floats({3, 3}, std::vector<float>(9));
  Tensor target3 = Floats({3, 2}, std::vector<float>(6));
  EXPECT_THAT(std::string(affine.trainer->Step({x3.view(), target3.view()}).status().message()),
              HasSubstr("batch 3 does not divide into 2 micro-batches"));
  Tensor wide = Floats({4, 5}, std::vector<float>(20));
  EXPECT_THAT(std::string(affine.trainer->Step({wide.view(), affine.target.view()}).status().message()),
              HasSubstr("cell '_backbone.first'"));
  EXPECT_THAT(std::string(affine.trainer->Step({affine.x.view()}).status().message()),
              HasSubstr("the cell does not take 1 input"));
  EXPECT_TRUE(affine.Step().ok());
}

TEST(Trainer, HandsOnWhatThePassesRefuse) {
  auto net = std::make_shared<Affine>();
  const auto refusal = [&](const TrainerOptions& options) {
    const absl::StatusOr<std::unique_ptr<Trainer>> trainer =
        Trainer::Create(Pipeline(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), 2),
                        SGD(net->TrainableParams(), 0.1), options);
    if (!trainer.ok()) return std::string(trainer.status().message());
    AffineTrainer data;
    return std::string((*trainer)->Step({data.x.view(), data.target.view()}).status().message());
  };
  EXPECT_THAT(refusal(Quiet(1)), AllOf(HasSubstr("_backbone.last"), HasSubstr("stage 1")));  // beyond the last stage
  EXPECT_THAT(refusal(Quiet(3)), HasSubstr("stage 2 of 3 is empty"));
  EXPECT_THAT(refusal(Quiet(0)), HasSubstr("0"));
  EXPECT_THAT(refusal(Quiet(2, "2f2b")), HasSubstr("2f2b"));
  net->children()[0].cell->SetPipelineStage(1);
  net->children()[1].cell->SetPipelineStage(0);
  EXPECT_THAT(refusal(Quiet(2)), HasSubstr("an edge back to a lower stage"));
}

}  // namespace
}  // namespace pipeloom
