// Trainers of ranks that are programs of their own: what a trainer of threads does, over ends of a transport.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/file_io.h"
#include "kernels/base/status_macros.h"
#include "plugin/cells/counter_random.h"
#include "plugin/cells/layers.h"
#include "plugin/cells/losses.h"
#include "plugin/cells/trainer.h"
#include "tests/testlib/ranks.h"

namespace pipeloom {
namespace {

using testing::HasSubstr;

// Two layers that share a weight, on two stages.
absl::StatusOr<std::unique_ptr<Trainer>> MakeTrainer(std::unique_ptr<Transport> transport, int stages,
                                                     bool output_broadcast = false) {
  auto net = std::make_shared<SequentialCell>();
  Dense& first = net->Append<Dense>(4, 4);
  first.SetPipelineStage(0);
  net->Append<Tanh>();
  Dense& last = net->Append<Dense>(4, 4);
  last.SetPipelineStage(1);
  last.weight = first.weight;
  net->SetSeed(3);
  TrainerOptions options;
  options.stages = stages;
  options.table = nullptr;
  options.output_broadcast = output_broadcast;
  const Pipeline pipeline(std::make_shared<WithLossCell>(net, std::make_shared<CrossEntropyLoss>()), /*micro_size=*/2);
  return Trainer::Create(pipeline, Adam(net->TrainableParams(), 0.05), options, std::move(transport));
}

struct Batch {
  explicit Batch(int64_t rows) : x(TensorType{DType::kFloat32, {rows, 4}}), labels(TensorType{DType::kInt32, {rows}}) {
    const CounterRandom random(0, "x");
    for (int64_t i = 0; i < rows * 4; ++i) x.data<float>()[i] = static_cast<float>(random.Normal(i));
    for (int64_t i = 0; i < rows; ++i) labels.data<int32_t>()[i] = static_cast<int32_t>(i % 4);
  }
  std::vector<TensorView> views() { return {x.view(), labels.view()}; }

  Tensor x;
  Tensor labels;
};

// Losses of batches of these rows, one after the other.
absl::StatusOr<std::vector<float>> Losses(Trainer& trainer, const std::vector<int64_t>& rows) {
  std::vector<float> losses;
  for (const int64_t each : rows) {
    Batch batch(each);
    ASSIGN_OR_RETURN(const float loss, trainer.Step(batch.views()));
    losses.push_back(loss);
  }
  return losses;
}

void ExpectOk(const std::vector<absl::Status>& statuses) {
  for (size_t rank = 0; rank < statuses.size(); ++rank) EXPECT_TRUE(statuses[rank].ok()) << rank << statuses[rank];
}

TEST(RankTrainer, BatchesOfOtherSizesAndCheckpointsAreThoseOfThreads) {
  const std::vector<int64_t> rows = {4, 4, 8, 2, 4, 8};  // growing, short, and as before
  const std::string of_threads = testing::TempDir() + "/threads.safetensors";
  const std::string of_ranks = testing::TempDir() + "/ranks.safetensors";
  auto threads = MakeTrainer(nullptr, 2);
  ASSERT_TRUE(threads.ok()) << threads.status();
  const absl::StatusOr<std::vector<float>> expected = Losses(**threads, rows);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE((*threads)->SaveCheckpoint(of_threads).ok());
  ExpectOk(RunRanks(2, [&](std::unique_ptr<Transport> transport) -> absl::Status {
    ASSIGN_OR_RETURN(const auto trainer, MakeTrainer(std::move(transport), 2));
    ASSIGN_OR_RETURN(const std::vector<float> losses, Losses(*trainer, rows));
    EXPECT_EQ(losses, *expected);
    return trainer->SaveCheckpoint(of_ranks);
  }));
  const absl::StatusOr<std::string> bytes = ReadFile(of_ranks);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(*bytes == *ReadFile(of_threads));
}

TEST(RankTrainer, LoadsACheckpointBeforeAndAfterTheFirstStep) {
  const std::string path = testing::TempDir() + "/trained.safetensors";
  auto trained = MakeTrainer(nullptr, 2);
  ASSERT_TRUE(trained.ok());
  ASSERT_TRUE(Losses(**trained, {4, 4, 4}).ok());
  ASSERT_TRUE((*trained)->SaveCheckpoint(path).ok());
  Batch batch(4);
  const auto expected = (*trained)->Predict({batch.x.view()});
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto values = [](const Tensor& tensor) {
    return std::vector<float>(tensor.data<float>(), tensor.data<float>() + tensor.type().num_elements());
  };
  for (const int steps_before : {0, 2}) {
    ExpectOk(RunRanks(2, [&](std::unique_ptr<Transport> transport) -> absl::Status {
      ASSIGN_OR_RETURN(const auto trainer, MakeTrainer(std::move(transport), 2, /*output_broadcast=*/true));
      RETURN_IF_ERROR(Losses(*trainer, std::vector<int64_t>(static_cast<size_t>(steps_before), 4)).status());
      RETURN_IF_ERROR(trainer->LoadCheckpoint(path));
      Batch mine(4);
      ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, trainer->Predict({mine.x.view()}));
      EXPECT_EQ(values(outputs[0]), values((*expected)[0]));
      EXPECT_EQ(trainer->LoadCheckpoint(path + ".none").code(), absl::StatusCode::kNotFound);
      EXPECT_FALSE(trainer->SaveCheckpoint("/no/such/folder/file").ok());
      return trainer->Step(mine.views()).status();
    }));
  }
}

TEST(RankTrainer, OutputsAreOfSizeZeroOnTheStagesBeforeTheLast) {
  ExpectOk(RunRanks(2, [&](std::unique_ptr<Transport> transport) -> absl::Status {
    const int rank = transport->rank().value();
    ASSIGN_OR_RETURN(const auto trainer, MakeTrainer(std::move(transport), 2));
    Batch batch(4);
    ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, trainer->Predict({batch.x.view()}));
    EXPECT_EQ(outputs[0].type().shape, (rank == 1 ? Shape{4, 4} : Shape{0, 4}));
    return absl::OkStatus();
  }));
}

TEST(RankTrainer, AWorldThatDoesNotMatchTheStagesIsRefusedByAll) {
  for (const absl::Status& status : RunRanks(
           3, [&](std::unique_ptr<Transport> transport) { return MakeTrainer(std::move(transport), 2).status(); })) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("the pipeline has 2 stages, but 3 processes were started"));
  }
}

}  // namespace
}  // namespace pipeloom
