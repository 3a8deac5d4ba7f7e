// Cells that are more than a formula of their inputs: Dropout, Print, and a mean over the labels of the whole step.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/elements.h"
#include "plugin/cells/layers.h"
#include "plugin/cells/losses.h"
#include "plugin/cells/ops.h"
#include "plugin/cells/trainer.h"

namespace pipeloom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Tensor Make(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor tensor(TensorType{dtype, shape});
  StoreElements(values, tensor.view());
  return tensor;
}

TrainerOptions Options(int stages, const std::string& schedule = "1f1b") {
  TrainerOptions options;
  options.stages = stages;
  options.schedule = schedule;
  options.table = nullptr;
  return options;
}

std::unique_ptr<Trainer> Train(std::shared_ptr<Cell> net_with_loss, int micro_batches, const Optimizer& optimizer,
                               const TrainerOptions& options, const std::string& loss_reduction = "mean") {
  auto trainer =
      Trainer::Create(Pipeline(std::move(net_with_loss), micro_batches, {}, loss_reduction), optimizer, options);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return trainer.ok() ? *std::move(trainer) : nullptr;
}

constexpr int64_t kWidth = 16;
constexpr double kRate = 0.25;

// w (ones) times x, with elements dropped, summed: the gradient of w tells which elements were kept.
class Masked : public Cell {
 public:
  Masked() : w_(AddParameter("w", {kWidth}, Ones())), dropout_(AddCell<Dropout>("dropout", kRate)) {}
  Var Construct(Var x) override { return ops::ReduceSum(dropout_(ops::Mul(x, w_))); }

 private:
  ParameterPtr& w_;
  Dropout& dropout_;
};

struct Kept {
  std::vector<float> losses;
  std::vector<std::vector<double>> of_step;  // how often each element was kept
};

Kept KeptIn(int steps, int micro_batches, uint64_t seed) {
  auto net = std::make_shared<Masked>();
  net->SetSeed(seed);
  const auto trainer = Train(net, micro_batches, SGD(net->TrainableParams(), 1.0), Options(1), "sum");
  Tensor x = Make(DType::kFloat32, {micro_batches, kWidth}, {1});
  Kept kept;
  for (int step = 0; step < steps; ++step) {
    EXPECT_TRUE(trainer
                    ->WriteParameters([] {
                      TensorMap ones;
                      ones.emplace("w", Make(DType::kFloat32, {kWidth}, {1}));
                      return ones;
                    }())
                    .ok());
    const absl::StatusOr<float> loss = trainer->Step({x.view()});
    EXPECT_TRUE(loss.ok()) << loss.status();
    kept.losses.push_back(loss.value_or(0));
    std::vector<double> counts = LoadElements(trainer->ReadParameters()->at("w").view());
    for (double& count : counts) count = (1 - count) * (1 - kRate);  // the weight moved by its gradient
    kept.of_step.push_back(counts);
  }
  return kept;
}

TEST(DropoutTest, ForwardAndBackwardKeepTheSameElements) {
  const Kept kept = KeptIn(20, 4, 0);
  double all = 0;
  for (size_t step = 0; step < kept.losses.size(); ++step) {
    double sum = 0;
    for (const double count : kept.of_step[step]) {
      EXPECT_NEAR(count, std::round(count), 1e-5);
      sum += count;
    }
    EXPECT_NEAR(kept.losses[step], sum / (1 - kRate), 1e-3);
    all += sum;
  }
  const double share = all / (20 * 4 * kWidth);
  EXPECT_NEAR(share, 1 - kRate, 0.05);  // 1280 draws: 4 standard deviations
}

TEST(DropoutTest, StepSeedAndMicroBatchEachChangeWhatIsKept) {
  const Kept kept = KeptIn(3, 1, 0);
  const Kept again = KeptIn(3, 1, 0);
  EXPECT_EQ(kept.of_step, again.of_step);
  EXPECT_NE(kept.of_step[0], kept.of_step[1]);
  EXPECT_NE(kept.of_step[1], kept.of_step[2]);
  EXPECT_NE(KeptIn(1, 1, 1).of_step, std::vector<std::vector<double>>{kept.of_step[0]});
  // Were all micro-batches alike, each element would be kept in all or in none.
  const Kept two = KeptIn(1, 2, 0);
  EXPECT_TRUE(
      std::any_of(two.of_step[0].begin(), two.of_step[0].end(), [](double count) { return std::lround(count) == 1; }));
}

// The losses of a run that ends in the middle, is saved, and goes on in another trainer are those of one that does not.
TEST(DropoutTest, ARunThatIsLoadedGoesOnWithTheMasksOfTheOneThatWasSaved) {
  const auto make = [] {
    auto net = std::make_shared<Masked>();
    return Train(net, 2, SGD(net->TrainableParams(), 0.1), Options(1), "sum");
  };
  Tensor x = Make(DType::kFloat32, {2, kWidth}, {1});
  const auto losses_of = [&](Trainer& trainer, int steps) {
    std::vector<float> losses;
    for (int step = 0; step < steps; ++step) losses.push_back(trainer.Step({x.view()}).value_or(0));
    return losses;
  };
  const auto whole = make();
  const std::vector<float> begin = losses_of(*whole, 3), end = losses_of(*whole, 3);
  const std::string path = testing::TempDir() + "/dropout_run";
  const auto first = make();
  EXPECT_EQ(losses_of(*first, 3), begin);
  ASSERT_TRUE(first->SaveCheckpoint(path).ok());
  const auto second = make();
  ASSERT_TRUE(second->LoadCheckpoint(path).ok());
  EXPECT_EQ(losses_of(*second, 3), end);
  // Also one that has gone its own way; and without the number, masks go on from where the trainer is.
  ASSERT_TRUE(second->LoadCheckpoint(path).ok());
  EXPECT_EQ(losses_of(*second, 3), end);
  const absl::StatusOr<TensorMap> saved = ReadSafetensors(path);
  ASSERT_TRUE(saved.ok()) << saved.status();
  ASSERT_TRUE(WriteSafetensors(path, *saved).ok());
  const auto third = make();
  losses_of(*third, 3);
  ASSERT_TRUE(third->LoadCheckpoint(path).ok());
  EXPECT_EQ(losses_of(*third, 3), end);
  for (const char* steps : {"-1", "three", "99999999999999999999", ""}) {
    ASSERT_TRUE(WriteSafetensors(path, *saved, {{"steps", steps}}).ok());
    EXPECT_THAT(std::string(third->LoadCheckpoint(path).message()),
                AllOf(HasSubstr(path), HasSubstr(absl::StrCat("steps='", steps, "', which is no number"))));
  }
}

// An embedding, two dropouts in one cell, and the table again at the end.
class Language : public Cell {
 public:
  explicit Language(double p)
      : embedding_(AddCell<Embedding>("embedding", 6, 8, Normal(0.5))),
        drop_(AddCell<Dropout>("drop", p)),
        layer_(AddCell<Dense>("layer", 8, 8)),
        head_(AddCell<Dense>("head", 8, 6)) {
    head_.weight = embedding_.embedding_table;
  }
  Var Construct(Var ids) override { return head_(drop_(ops::Tanh(layer_(drop_(embedding_(ids)))))); }
  void SetStages(const std::vector<int>& stages) {
    embedding_.SetPipelineStage(stages[0]);
    layer_.SetPipelineStage(stages[1]);
    head_.SetPipelineStage(stages[2]);
  }

 private:
  Embedding& embedding_;
  Dropout& drop_;
  Dense& layer_;
  Dense& head_;
};

struct Trained {
  std::vector<float> losses;
  std::vector<std::vector<double>> parameters;
  std::vector<double> predicted;
  friend bool operator==(const Trained& a, const Trained& b) {
    return a.losses == b.losses && a.parameters == b.parameters && a.predicted == b.predicted;
  }
};

Trained TrainLanguage(double p, const std::vector<int>& stages, const std::string& schedule) {
  auto net = std::make_shared<Language>(p);
  net->SetSeed(4);
  net->SetStages(stages);
  const auto trainer = Train(std::make_shared<WithLossCell>(net, std::make_shared<CrossEntropyLoss>()), 4,
                             SGD(net->TrainableParams(), 0.3, 0.9), Options(stages.back() + 1, schedule));
  Tensor ids = Make(DType::kInt64, {8}, {0, 5, 2, 2, 1, 4, 3, 0});
  Tensor labels = Make(DType::kInt64, {8}, {1, 0, 3, -100, 2, 5, 4, 1});
  Trained trained;
  for (int step = 0; step < 5; ++step) {
    const absl::StatusOr<float> loss = trainer->Step({ids.view(), labels.view()});
    EXPECT_TRUE(loss.ok()) << loss.status();
    trained.losses.push_back(loss.value_or(0));
  }
  absl::StatusOr<TensorMap> parameters = trainer->ReadParameters();
  for (auto& [name, value] : *parameters) trained.parameters.push_back(LoadElements(value.view()));
  absl::StatusOr<std::vector<Tensor>> outputs = trainer->Predict({ids.view()});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  trained.predicted = LoadElements((*outputs)[0].view());
  return trained;
}

TEST(DropoutTest, TheSameBitsOnStagesAndSchedules) {
  const Trained one = TrainLanguage(0.5, {0, 0, 0}, "1f1b");
  EXPECT_FALSE(one == TrainLanguage(0, {0, 0, 0}, "1f1b"));
  for (const std::string schedule : {"gpipe", "1f1b", "interleaved"}) {
    for (const std::vector<int>& stages :
         {std::vector<int>{0, 0, 0}, std::vector<int>{0, 0, 1}, std::vector<int>{0, 1, 1}, std::vector<int>{0, 1, 2}}) {
      EXPECT_TRUE(TrainLanguage(0.5, stages, schedule) == one) << schedule << " on " << stages.back() + 1 << " stages";
    }
  }
}

TEST(DropoutTest, PredictionDropsNothing) {
  auto net = std::make_shared<Language>(0.5);
  auto plain = std::make_shared<Language>(0.0);
  const auto predict = [](const std::shared_ptr<Cell>& cell) {
    auto trainer = Trainer::Create(PipelineCellInference(cell, 2), Options(1));
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    Tensor ids = Make(DType::kInt32, {4}, {0, 5, 2, 2});
    absl::StatusOr<std::vector<Tensor>> outputs = (*trainer)->Predict({ids.view()});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return LoadElements((*outputs)[0].view());
  };
  EXPECT_EQ(predict(net), predict(plain));
}

TEST(DropoutTest, RefusesAShareOfAll) {
  auto net = std::make_shared<Language>(1.0);
  const auto trainer = Train(std::make_shared<WithLossCell>(net, std::make_shared<CrossEntropyLoss>()), 1,
                             SGD(net->TrainableParams(), 0.3), Options(1));
  Tensor ids = Make(DType::kInt32, {4}, {0, 5, 2, 2});
  EXPECT_THAT(std::string(trainer->CompileStep({ids.view(), ids.view()}).message()),
              AllOf(HasSubstr("cell '_backbone.drop'"), HasSubstr("p 1")));
}

// Logits that are the weights themselves: x is one-hot.
struct MeanLoss {
  float loss;
  std::vector<double> weight;
};

MeanLoss MaskedStep(const std::vector<double>& labels, int micro_batches, int stages, const std::string& reduction) {
  DenseOptions options;
  options.has_bias = false;
  auto net = std::make_shared<SequentialCell>();
  net->Append<Dense>(3, 4, options).SetPipelineStage(0);
  net->Append<Dense>(4, 3, options).SetPipelineStage(stages - 1);
  net->SetSeed(2);
  auto loss_fn = std::make_shared<CrossEntropyLoss>();
  const auto trainer = Train(std::make_shared<WithLossCell>(net, loss_fn), micro_batches,
                             SGD(net->TrainableParams(), 1.0), Options(stages), reduction);
  const auto rows = static_cast<int64_t>(labels.size());
  std::vector<double> x;
  for (int64_t i = 0; i < rows * 3; ++i) x.push_back(static_cast<double>(i * 7 % 5) - 2);
  Tensor data = Make(DType::kFloat32, {rows, 3}, x);
  Tensor label = Make(DType::kInt32, {rows}, labels);
  const absl::StatusOr<float> loss = trainer->Step({data.view(), label.view()});
  EXPECT_TRUE(loss.ok()) << loss.status();
  return {loss.value_or(0), LoadElements(trainer->ReadParameters()->at("0.weight").view())};
}

TEST(CrossEntropyTest, EachLabelWeighsTheSameWhicheverMicroBatchItIsIn) {
  std::vector<double> labels(20, -100);
  for (size_t i = 0; i < 10; ++i)
    labels[i] = static_cast<double>(i % 3);  // 10 in the first micro-batch, 2 in the second
  labels[13] = 2;
  labels[19] = 1;
  const MeanLoss whole = MaskedStep(labels, 1, 1, "mean");
  for (const int stages : {1, 2}) {
    const MeanLoss two = MaskedStep(labels, 2, stages, "mean");
    EXPECT_NEAR(two.loss, whole.loss, 1e-6 * whole.loss);
    for (size_t i = 0; i < two.weight.size(); ++i) EXPECT_NEAR(two.weight[i], whole.weight[i], 1e-6);
  }
  // A sum of means is what was asked for: each micro-batch has its own.
  EXPECT_GT(std::abs(MaskedStep(labels, 2, 1, "sum").loss / 2 - whole.loss), 1e-3);
}

TEST(CrossEntropyTest, LabelsThatAreNoInputAreRefusedForAMeanOverTheStep) {
  class Shifted : public Cell {
   public:
    Shifted() : layer_(AddCell<Dense>("layer", 3, 4)), loss_(AddCell<CrossEntropyLoss>("loss")) {}
    Var Construct(Var x, Var labels) override { return loss_(layer_(x), ops::Slice(labels, {0}, {labels.dim(0)})); }

   private:
    Dense& layer_;
    CrossEntropyLoss& loss_;
  };
  auto net = std::make_shared<Shifted>();
  const auto trainer = Train(net, 1, SGD(net->TrainableParams(), 1.0), Options(1));
  Tensor x = Make(DType::kFloat32, {2, 3}, {0});
  Tensor labels = Make(DType::kInt32, {2}, {0, 1});
  EXPECT_THAT(std::string(trainer->CompileStep({x.view(), labels.view()}).message()),
              AllOf(HasSubstr("cell 'loss'"), HasSubstr("of op slice"), HasSubstr("reduction 'sum'")));
}

// x w, printed on the way.
class Printing : public Cell {
 public:
  Printing() : layer_(AddCell<Dense>("layer", 1, 1, NoBias())), print_(AddCell<Print>("print", "out is:")) {}
  Var Construct(Var x) override { return print_(layer_(x)); }
  static DenseOptions NoBias() {
    DenseOptions options;
    options.has_bias = false;
    options.weight_init = Ones();
    return options;
  }

 private:
  Dense& layer_;
  Print& print_;
};

TEST(PrintTest, OncePerMicroBatchInOrderOnItsStage) {
  auto net = std::make_shared<SequentialCell>();
  net->Append<Printing>().SetPipelineStage(0);
  net->Append<Dense>(1, 1, Printing::NoBias()).SetPipelineStage(1);
  const auto trainer = Train(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), 2,
                             SGD(net->TrainableParams(), 0.1), Options(2));
  Tensor x = Make(DType::kFloat32, {2, 1}, {1, 2});
  testing::internal::CaptureStderr();
  ASSERT_TRUE(trainer->CompileStep({x.view(), x.view()}).ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStdout();
  ASSERT_TRUE(trainer->Step({x.view(), x.view()}).ok());
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "out is:\nTensor(shape=[1, 1], dtype=Float32, value=\n[[ 1.00000000e+00]])\n"
            "out is:\nTensor(shape=[1, 1], dtype=Float32, value=\n[[ 2.00000000e+00]])\n");
}

TEST(PrintTest, WithoutAStageOneWarningNamesTheCell) {
  class Outer : public Cell {
   public:
    Outer()
        : first_(AddCell<Dense>("first", 1, 1, Printing::NoBias())),
          print_(AddCell<Print>("print", "h:")),
          last_(AddCell<Dense>("last", 1, 1, Printing::NoBias())) {
      first_.SetPipelineStage(0);
      last_.SetPipelineStage(1);
    }
    Var Construct(Var x) override { return last_(print_(first_(x))); }

   private:
    Dense& first_;
    Print& print_;
    Dense& last_;
  };
  auto net = std::make_shared<Outer>();
  auto trainer = Trainer::Create(PipelineCellInference(net, 1), Options(2));
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  Tensor x = Make(DType::kFloat32, {1, 1}, {3});
  Tensor more = Make(DType::kFloat32, {2, 1}, {3, 4});
  testing::internal::CaptureStderr();
  ASSERT_TRUE((*trainer)->CompilePredict({x.view()}).ok());
  ASSERT_TRUE((*trainer)->CompilePredict({more.view()}).ok());
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning, AllOf(HasSubstr("'print'"), HasSubstr("SetPipelineStage")));
  EXPECT_EQ(warning.find("'print'"), warning.rfind("'print'"));
  testing::internal::CaptureStdout();
  ASSERT_TRUE((*trainer)->Predict({x.view()}).ok());
  EXPECT_THAT(testing::internal::GetCapturedStdout(), AllOf(HasSubstr("h:\n"), HasSubstr("3.00000000e+00")));
}

TEST(SplitTest, PartsAndTheirGradients) {
  class Parts : public Cell {
   public:
    explicit Parts(std::vector<int64_t> sizes) : sizes_(std::move(sizes)), w_(AddParameter("w", {1, 5}, Ones())) {}
    Var Construct(Var x) override {
      const std::vector<Var> parts = ops::Split(ops::Mul(x, w_), sizes_, -1);
      return ops::ReduceSum(ops::Mul(parts[0], parts[1]));
    }

   private:
    std::vector<int64_t> sizes_;
    ParameterPtr& w_;
  };
  auto net = std::make_shared<Parts>(std::vector<int64_t>{2, 2, 1});
  const auto trainer = Train(net, 1, SGD(net->TrainableParams(), 1.0), Options(1));
  Tensor x = Make(DType::kFloat32, {1, 5}, {1, 2, 3, 4, 5});
  const absl::StatusOr<float> loss = trainer->Step({x.view()});
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, 1 * 3 + 2 * 4);
  EXPECT_EQ(LoadElements(trainer->ReadParameters()->at("w").view()), (std::vector<double>{-2, -7, -2, -7, 1}));
  auto wrong = std::make_shared<Parts>(std::vector<int64_t>{2, 2});
  const auto refused = Train(wrong, 1, SGD(wrong->TrainableParams(), 1.0), Options(1));
  EXPECT_THAT(std::string(refused->CompileStep({x.view()}).message()), HasSubstr("[2, 2] do not add up to axis -1"));
}

}  // namespace
}  // namespace pipeloom
