// Networks that only predict: PipelineCellInference on stages, a table that cells hand on, ids as inputs.

#include <memory>
#include <sstream>
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

constexpr int64_t kVocab = 6;
constexpr int64_t kWidth = 4;

// The rows for ids [n, 1], and the table itself.
class VocabEmbedding : public Cell {
 public:
  VocabEmbedding() : table_(AddParameter("embedding_table", {kVocab, kWidth}, Normal(0.5))) {}
  std::vector<Var> Construct(const std::vector<Var>& ids) override {
    return {ops::Gather(table_, ops::Reshape(ids[0], {-1})), table_};
  }

 private:
  ParameterPtr& table_;
};

class Head : public Cell {
 public:
  Var Construct(Var x, Var table) override { return ops::MatMul(x, ops::Transpose(table, {1, 0})); }
};

class LanguageModel : public Cell {
 public:
  explicit LanguageModel(bool gives_table = false)
      : gives_table_(gives_table),
        embedding_(AddCell<VocabEmbedding>("word_embedding")),
        layer1_(AddCell<Dense>("layer1", kWidth, kWidth)),
        layer2_(AddCell<Dense>("layer2", kWidth, kWidth)),
        head_(AddCell<Head>("head")) {}

  void SetStages(const std::vector<int>& stages) {
    for (size_t i = 0; i < stages.size(); ++i) children()[i].cell->SetPipelineStage(stages[i]);
  }

 protected:
  std::vector<Var> Construct(const std::vector<Var>& ids) override {
    const std::vector<Var> embedded = embedding_(ids);
    const Var logits = head_(layer2_(layer1_(embedded[0])), embedded[1]);
    if (gives_table_) return {logits, ids[0], embedded[1]};
    return {logits};
  }

 private:
  const bool gives_table_;
  VocabEmbedding& embedding_;
  Dense& layer1_;
  Dense& layer2_;
  Head& head_;
};

TrainerOptions Options(int stages, std::ostream* table = nullptr) {
  TrainerOptions options;
  options.stages = stages;
  options.table = table;
  return options;
}

std::unique_ptr<Trainer> Make(const PipelineCellInference& pipeline, const TrainerOptions& options) {
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(pipeline, options);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return trainer.ok() ? *std::move(trainer) : nullptr;
}

Tensor Ids(DType dtype, const Shape& shape, const std::vector<double>& ids) {
  Tensor tensor(TensorType{dtype, shape});
  StoreElements(ids, tensor.view());
  return tensor;
}

const std::vector<double> kIds = {0, 5, 2, 2, 1, 4, 3, 0};

std::vector<double> Logits(const std::vector<int>& stages, int micro_batches, DType dtype) {
  auto net = std::make_shared<LanguageModel>();
  net->SetSeed(3);
  net->SetStages(stages);
  const std::unique_ptr<Trainer> trainer = Make(PipelineCellInference(net, micro_batches), Options(stages.back() + 1));
  Tensor ids = Ids(dtype, {8, 1}, kIds);
  absl::StatusOr<std::vector<Tensor>> outputs = trainer->Predict({ids.view()});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok()) return {};
  EXPECT_EQ(outputs->size(), 1u);
  EXPECT_EQ((*outputs)[0].type(), (TensorType{DType::kFloat32, {8, kVocab}}));
  return LoadElements((*outputs)[0].view());
}

TEST(PipelineCellInferenceTest, LogitsAreThoseOfOneDevice) {
  const std::vector<double> one = Logits({0, 0, 0, 0}, 1, DType::kInt32);
  // x W1' + b1, then W2' and b2, then E', by plain loops in double.
  auto net = std::make_shared<LanguageModel>();
  net->SetSeed(3);
  const std::unique_ptr<Trainer> trainer = Make(PipelineCellInference(net, 1), Options(1));
  absl::StatusOr<TensorMap> parameters = trainer->ReadParameters();
  ASSERT_TRUE(parameters.ok());
  const std::vector<double> table = LoadElements(parameters->at("word_embedding.embedding_table").view());
  ASSERT_EQ(one.size(), kIds.size() * kVocab);
  for (size_t row = 0; row < kIds.size(); ++row) {
    std::vector<double> x(table.begin() + static_cast<int64_t>(kIds[row]) * kWidth,
                          table.begin() + (static_cast<int64_t>(kIds[row]) + 1) * kWidth);
    for (const std::string layer : {"layer1", "layer2"}) {
      const std::vector<double> weight = LoadElements(parameters->at(layer + ".weight").view());
      std::vector<double> y = LoadElements(parameters->at(layer + ".bias").view());
      for (int64_t i = 0; i < kWidth; ++i) {
        for (int64_t k = 0; k < kWidth; ++k) y[i] += x[k] * weight[i * kWidth + k];
      }
      x = y;
    }
    for (int64_t id = 0; id < kVocab; ++id) {
      double logit = 0;
      for (int64_t k = 0; k < kWidth; ++k) logit += x[k] * table[id * kWidth + k];
      EXPECT_NEAR(one[row * kVocab + id], logit, 1e-6) << "row " << row << ", id " << id;
    }
  }
  for (const int micro_batches : {1, 2, 4, 8}) {
    const std::vector<double> one_device = Logits({0, 0, 0, 0}, micro_batches, DType::kInt32);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one_device[i], one[i], 1e-6);
    for (const std::vector<int>& stages :
         {std::vector<int>{0, 0, 0, 1}, std::vector<int>{0, 0, 1, 2}, std::vector<int>{0, 1, 2, 3}}) {
      for (const DType dtype : {DType::kInt32, DType::kInt64}) {
        EXPECT_EQ(Logits(stages, micro_batches, dtype), one_device)
            << stages.back() + 1 << " stages, " << micro_batches << " micro-batches, ids of " << Info(dtype).name;
      }
    }
  }
}

TEST(PipelineCellInferenceTest, InputsAndParametersMayBeOutputs) {
  for (const int stages : {1, 4}) {
    auto net = std::make_shared<LanguageModel>(/*gives_table=*/true);
    net->SetStages({0, stages == 1 ? 0 : 1, stages == 1 ? 0 : 2, stages - 1});
    const std::unique_ptr<Trainer> trainer = Make(PipelineCellInference(net, 2), Options(stages));
    Tensor ids = Ids(DType::kInt64, {8, 1}, kIds);
    absl::StatusOr<std::vector<Tensor>> outputs = trainer->Predict({ids.view()});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    ASSERT_EQ(outputs->size(), 3u);
    EXPECT_EQ(LoadElements((*outputs)[1].view()), kIds);
    absl::StatusOr<TensorMap> parameters = trainer->ReadParameters();
    std::vector<double> table = LoadElements(parameters->at("word_embedding.embedding_table").view());
    table.insert(table.end(), table.begin(), table.begin() + kVocab * kWidth);  // of each micro-batch
    EXPECT_EQ(LoadElements((*outputs)[2].view()), table);
  }
}

TEST(PipelineCellInferenceTest, PrintsTheStagesOnceAndTrainsNothing) {
  auto net = std::make_shared<LanguageModel>();
  net->SetStages({0, 0, 1, 1});
  std::ostringstream table;
  const std::unique_ptr<Trainer> trainer = Make(PipelineCellInference(net, 2), Options(2, &table));
  Tensor ids = Ids(DType::kInt32, {8, 1}, kIds);
  Tensor fewer = Ids(DType::kInt32, {2, 1}, {1, 1});
  ASSERT_TRUE(trainer->CompilePredict({ids.view()}).ok());
  EXPECT_THAT(table.str(), AllOf(HasSubstr("word_embedding, layer1"), HasSubstr("word_embedding.embedding_table")));
  const std::string printed = table.str();
  ASSERT_TRUE(trainer->Predict({fewer.view()}).ok());
  EXPECT_EQ(table.str(), printed);
  const absl::Status step = trainer->Step({ids.view()}).status();
  EXPECT_EQ(step.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(step.message()), HasSubstr("only predicts"));
}

TEST(PipelineCellInferenceTest, RefusesABatchThatDoesNotDivide) {
  const std::unique_ptr<Trainer> trainer =
      Make(PipelineCellInference(std::make_shared<LanguageModel>(), 3), Options(1));
  Tensor ids = Ids(DType::kInt32, {8, 1}, kIds);
  EXPECT_THAT(std::string(trainer->CompilePredict({ids.view()}).message()),
              AllOf(HasSubstr("batch 8"), HasSubstr("3 micro-batches")));
}

TEST(PipelineCellInferenceTest, RefusesAScheduleThatIsNone) {
  TrainerOptions options = Options(1);
  options.schedule = "1fib";
  const absl::Status status =
      Trainer::Create(PipelineCellInference(std::make_shared<LanguageModel>(), 2), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no schedule is named \"1fib\"; choose from 1f1b"));
  options.schedule = "gpipe";
  EXPECT_TRUE(Trainer::Create(PipelineCellInference(std::make_shared<LanguageModel>(), 2), options).ok());
}

TEST(PipelineCellInferenceTest, IdOutOfRangeNamesItsPlace) {
  auto net = std::make_shared<LanguageModel>();
  net->SetStages({0, 0, 1, 1});
  const std::unique_ptr<Trainer> trainer = Make(PipelineCellInference(net, 2), Options(2));
  Tensor ids = Ids(DType::kInt32, {8, 1}, {0, 0, 0, 0, 0, 6, 0, 0});
  EXPECT_THAT(std::string(trainer->Predict({ids.view()}).status().message()),
              AllOf(HasSubstr("rank 0, 0F1"), HasSubstr("cell word_embedding"), HasSubstr("id 6 at position 1"),
                    HasSubstr("[0, 6)")));
}

TEST(CellListTest, CellsAreCalledOneByOne) {
  class Twice : public Cell {
   public:
    explicit Twice(bool calls_the_list) : calls_the_list_(calls_the_list), list_(AddCell<CellList>("layers")) {
      list_.Append<Dense>(2, 3);
      list_.Append<Dense>(3, 2);
    }
    Var Construct(Var x) override {
      if (calls_the_list_) return list_(x);
      for (size_t i = 0; i < list_.size(); ++i) x = list_[i](x);
      return x;
    }

   private:
    const bool calls_the_list_;
    CellList& list_;
  };
  Tensor x = Ids(DType::kFloat32, {1, 2}, {1, 2});
  const std::unique_ptr<Trainer> trainer = Make(PipelineCellInference(std::make_shared<Twice>(false), 1), Options(1));
  const absl::StatusOr<std::vector<Tensor>> y = trainer->Predict({x.view()});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ((*y)[0].type(), (TensorType{DType::kFloat32, {1, 2}}));
  EXPECT_EQ(trainer->ReadParameters()->count("layers.1.weight"), 1u);
  const std::unique_ptr<Trainer> refused = Make(PipelineCellInference(std::make_shared<Twice>(true), 1), Options(1));
  EXPECT_THAT(std::string(refused->CompilePredict({x.view()}).message()),
              AllOf(HasSubstr("cell 'layers'"), HasSubstr("SequentialCell")));
}

// A table that is read at a border of stages and again at the end, trained: the same bits on every layout.
TEST(EmbeddingTest, TiedTableTrainsToTheSameBitsOnStages) {
  class Model : public Cell {
   public:
    Model()
        : embedding_(AddCell<Embedding>("embedding", kVocab, kWidth, Normal(0.5))),
          layer_(AddCell<Dense>("layer", kWidth, kWidth)),
          head_(AddCell<Dense>("head", kWidth, kVocab)) {
      head_.weight = embedding_.embedding_table;
    }
    Var Construct(Var ids) override { return head_(ops::Tanh(layer_(embedding_(ids)))); }

   private:
    Embedding& embedding_;
    Dense& layer_;
    Dense& head_;
  };
  struct Trained {
    std::vector<float> losses;
    std::vector<double> table;
  };
  const auto train = [](const std::vector<int>& stages, const std::string& schedule) {
    auto net = std::make_shared<Model>();
    net->SetSeed(1);
    for (size_t i = 0; i < stages.size(); ++i) net->children()[i].cell->SetPipelineStage(stages[i]);
    TrainerOptions options = Options(stages.back() + 1);
    options.schedule = schedule;
    const Pipeline pipeline(std::make_shared<WithLossCell>(net, std::make_shared<CrossEntropyLoss>()), 4);
    auto trainer = Trainer::Create(pipeline, SGD(net->TrainableParams(), 0.5, 0.9), options);
    Trained trained;
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    Tensor ids = Ids(DType::kInt64, {8}, kIds);
    Tensor labels = Ids(DType::kInt32, {8}, {1, 0, 3, 3, 2, 5, 4, 1});
    for (int step = 0; step < 10; ++step) {
      const absl::StatusOr<float> loss = (*trainer)->Step({ids.view(), labels.view()});
      EXPECT_TRUE(loss.ok()) << loss.status();
      trained.losses.push_back(loss.value_or(0));
    }
    trained.table = LoadElements((*trainer)->ReadParameters()->at("embedding.embedding_table").view());
    return trained;
  };
  const Trained one = train({0, 0, 0}, "1f1b");
  EXPECT_LT(one.losses.back(), 0.5f * one.losses.front());
  for (const std::string schedule : {"gpipe", "1f1b"}) {
    for (const std::vector<int>& stages :
         {std::vector<int>{0, 0, 1}, std::vector<int>{0, 1, 1}, std::vector<int>{0, 1, 2}}) {
      const Trained other = train(stages, schedule);
      EXPECT_EQ(other.losses, one.losses) << schedule << " on " << stages.back() + 1 << " stages";
      EXPECT_EQ(other.table, one.table) << schedule << " on " << stages.back() + 1 << " stages";
    }
  }
}

}  // namespace
}  // namespace pipeloom
