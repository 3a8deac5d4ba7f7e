// Faults that users of other pipelines met, of graphs, batches and schedules, as small cases with the right behaviour.
// Expected numbers are worked out by hand from the formulas.

#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/schedule/schedule_table.h"
#include "passes/schedule/verify_schedule.h"
#include "plugin/cells/layers.h"
#include "plugin/cells/losses.h"
#include "plugin/cells/trainer.h"
#include "tests/testlib/small_session.h"

namespace pipeloom {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

std::vector<std::string> SchedulesThatTrain() {
  std::vector<std::string> names;
  for (const ScheduleInfo& info : ScheduleTable()) {
    if (info.trains) names.emplace_back(info.name);
  }
  return names;
}

// ----- batches and lengths that change

// Four Dense(3, 3) over the last axis, whatever the others, with tanh between.
std::unique_ptr<Trainer> FourLayers(int stages, int micro_batches, const std::string& dump_dir = "") {
  auto net = std::make_shared<SequentialCell>();
  for (int i = 0; i < 4; ++i) {
    net->Append<Dense>(3, 3).SetPipelineStage(i * stages / 4);
    net->Append<Tanh>();
  }
  net->SetSeed(7);
  const Pipeline pipeline(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), micro_batches);
  TrainerOptions options;
  options.stages = stages;
  options.deadline = std::chrono::seconds(60);
  options.dump_dir = dump_dir;
  options.table = nullptr;
  auto trainer = Trainer::Create(pipeline, SGD(net->TrainableParams(), 0.1, 0.9), options);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return trainer.ok() ? *std::move(trainer) : nullptr;
}

// The losses of a step for each of `shapes`, then all weights.
std::vector<float> TrainOn(Trainer& trainer, const std::vector<Shape>& shapes) {
  std::vector<float> results;
  for (size_t step = 0; step < shapes.size(); ++step) {
    Tensor x(TensorType{DType::kFloat32, shapes[step]});
    Tensor target(x.type());
    for (int64_t i = 0; i < x.type().num_elements(); ++i) {
      x.data<float>()[i] = static_cast<float>((i * 7 + static_cast<int64_t>(step)) % 11) / 11.0f;
      target.data<float>()[i] = static_cast<float>(i % 3) - 1.0f;
    }
    const absl::StatusOr<float> loss = trainer.Step({x.view(), target.view()});
    EXPECT_TRUE(loss.ok()) << loss.status();
    if (loss.ok()) results.push_back(*loss);
  }
  const absl::StatusOr<TensorMap> weights = trainer.ReadParameters();
  EXPECT_TRUE(weights.ok()) << weights.status();
  if (!weights.ok()) return results;
  for (const auto& [name, value] : *weights) {
    results.insert(results.end(), value.data<float>(), value.data<float>() + value.type().num_elements());
  }
  return results;
}

// How many programs a trainer compiled into `folder`.
int Programs(const std::string& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<int>(std::distance(begin(entries), end(entries)));
}

std::string NewFolder(const std::string& name) {
  std::string folder = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(folder);
  return folder;
}

TEST(WholeSpineCases, sequence_length_changes_between_steps) {
  const std::vector<Shape> lengths = {{4, 5, 3}, {4, 2, 3}, {4, 5, 3}, {4, 9, 3}, {4, 2, 3}, {4, 1, 3}, {4, 9, 3}};
  const std::string folder = NewFolder("lengths");
  const auto four = FourLayers(4, 2, folder);
  const auto one = FourLayers(1, 2);
  ASSERT_TRUE(four != nullptr && one != nullptr);
  const std::vector<float> results = TrainOn(*four, lengths);
  EXPECT_EQ(results.size(), 7u + 4 * (9 + 3));
  EXPECT_EQ(results, TrainOn(*one, lengths));
  EXPECT_EQ(Programs(folder), 4) << "programs for 4 lengths";
}

TEST(WholeSpineCases, growing_batch) {
  const std::vector<Shape> batches = {{2, 3}, {4, 3}, {64, 3}, {2, 3}, {300, 3}, {64, 3}};
  const std::string folder = NewFolder("batches");
  const auto two = FourLayers(2, 2, folder);
  const auto one = FourLayers(1, 2);
  ASSERT_TRUE(two != nullptr && one != nullptr);
  const std::vector<float> results = TrainOn(*two, batches);
  EXPECT_EQ(results.size(), 6u + 4 * (9 + 3));
  EXPECT_EQ(results, TrainOn(*one, batches));
  EXPECT_EQ(Programs(folder), 4) << "programs for 4 batch sizes";
}

// 10 samples x = 1 ... 10 in batches of 4, 4 and 2; the loss of a sample is x^2.
TEST(WholeSpineCases, short_last_batch) {
  DenseOptions one;
  one.has_bias = false;
  one.weight_init = Ones();
  auto net = std::make_shared<SequentialCell>();
  net->Append<Dense>(1, 1, one).SetPipelineStage(0);
  net->Append<Dense>(1, 1, one).SetPipelineStage(1);
  const Pipeline pipeline(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), /*micro_size=*/2);
  TrainerOptions options;
  options.stages = 2;
  options.table = nullptr;
  options.dump_dir = NewFolder("short");
  // The weights stay, so that losses can be told in advance.
  auto trainer = Trainer::Create(pipeline, SGD(net->TrainableParams(), 0.0), options);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  const auto step = [&](int begin, int size) {
    Tensor x(TensorType{DType::kFloat32, {size, 1}});
    Tensor target(x.type());
    std::iota(x.data<float>(), x.data<float>() + size, static_cast<float>(begin + 1));
    std::fill_n(target.data<float>(), size, 0.0f);
    return (*trainer)->Step({x.view(), target.view()});
  };
  for (int epoch = 0; epoch < 2; ++epoch) {
    float weighted = 0;
    for (const int begin : {0, 4, 8}) {
      const int size = std::min(4, 10 - begin);
      const absl::StatusOr<float> loss = step(begin, size);
      ASSERT_TRUE(loss.ok()) << loss.status();
      weighted += static_cast<float>(size) * *loss;
    }
    EXPECT_EQ(weighted / 10, 38.5f);  // the mean of 1, 4, 9, ... 100
  }
  EXPECT_EQ(Programs(options.dump_dir), 2) << "programs for batches of 4 and 2";
  EXPECT_THAT(step(9, 1).status().message(),
              HasSubstr("batch 1 does not divide into 2 micro-batches; give a multiple of 2 or --micro_batches=1"));
  EXPECT_TRUE(step(0, 4).ok());  // the refusal spoilt nothing
}

// ----- values over stages

// h1 = x w1, h2 = h1 w2, y = (h2 + h1) w3, loss = y^2: for ones, y = 2 and d loss / d w is 8, 4 and 8.
TEST(WholeSpineCases, skip_edge_over_a_stage) {
  for (const std::string& schedule : SchedulesThatTrain()) {
    SCOPED_TRACE(schedule);
    auto session = SmallSession::Start(absl::StrReplaceAll(R"(
pipeline {micro_batches=3, schedule="S", stages=3}
stage "a" = 0
stage "b" = 1
stage "c" = 2

graph @step(%x: f32[1,1] {batch_axis=0}, %t: f32[1,1] {batch_axis=0}) -> (%loss {reduce="mean"}) {
  %w1 = param "w1" : f32[1,1]
  %w2 = param "w2" : f32[1,1]
  %w3 = param "w3" : f32[1,1]
  %h1 = matmul(%x, %w1) : f32[1,1]  // a, forward
  %h2 = matmul(%h1, %w2) : f32[1,1]  // b, forward
  %h3 = add(%h2, %h1) : f32[1,1]  // c, forward
  %y = matmul(%h3, %w3) : f32[1,1]  // c, forward
  %loss = mse(%y, %t) : f32[]  // forward
} update sgd {lr=0.0625}
)",
                                                           {{"S", schedule}}));
    ASSERT_TRUE(session.ok()) << session.status();
    for (const char* weight : {"w1", "w2", "w3"}) ASSERT_TRUE(session->Write(weight, {1}).ok());
    const auto loss = session->Step({{1, 1, 1}, {0, 0, 0}});
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_EQ(*loss, 4.0f);
    EXPECT_THAT(session->Read("w1"), ElementsAre(FloatEq(0.5f)));
    EXPECT_THAT(session->Read("w2"), ElementsAre(FloatEq(0.75f)));
    EXPECT_THAT(session->Read("w3"), ElementsAre(FloatEq(0.5f)));

    std::vector<std::string> over_a_stage;
    for (const RankProgram& rank : session->program().ranks) {
      for (const RankChannel& channel : rank.channels) {
        const int from = channel.spec.source.value();
        const int to = channel.spec.destination.value();
        if (channel.sends && std::abs(from - to) == 2) over_a_stage.push_back(absl::StrCat(from, " -> ", to));
      }
    }
    EXPECT_THAT(over_a_stage, testing::UnorderedElementsAre("0 -> 2", "2 -> 0"));
  }
}

// All micro-batches are in flight at once: what arrived is read again in the backward of its own micro-batch.
TEST(WholeSpineCases, buffer_still_alive) {
  const std::string text = R"(
pipeline {micro_batches=4, schedule="gpipe", stages=2}
stage "a" = 0
stage "b" = 1

graph @step(%x: f32[1,1] {batch_axis=0}, %t: f32[1,1] {batch_axis=0}) -> (%loss {reduce="mean"}) {
  %w1 = param "w1" : f32[1,1]
  %w2 = param "w2" : f32[1,1]
  %h = matmul(%x, %w1) : f32[1,1]  // a, forward
  %y = matmul(%h, %w2) : f32[1,1]  // b, forward
  %loss = mse(%y, %t) : f32[]  // forward
} update sgd {lr=0.0625}
)";
  auto session = SmallSession::Start(text);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Write("w1", {1}).ok());
  ASSERT_TRUE(session->Write("w2", {1}).ok());
  ASSERT_TRUE(session->Step({{1, 2, 3, 4}, {0, 0, 0, 0}}).ok());
  // d loss / d w2 is the mean of 2 y h = 2 x^2, and so is that of w1.
  EXPECT_THAT(session->Read("w1"), ElementsAre(FloatEq(1 - 15 / 16.0f)));
  EXPECT_THAT(session->Read("w2"), ElementsAre(FloatEq(1 - 15 / 16.0f)));

  // A channel with fewer slots than micro-batches in flight is refused, not overwritten.
  const auto schedule = MakeSchedule("gpipe", 2, 4, 1);
  ASSERT_TRUE(schedule.ok());
  const CommunicationEdge forward{ChunkId(0), ChunkId(1), true};
  const std::vector<CommunicationEdge> edges = {forward, {ChunkId(1), ChunkId(0), false}};
  const auto verify = [&](int slots) {
    const std::vector<ChannelCredits> credits = {{forward, slots, ActionKind::kBackwardWeight, 1}};
    return VerifySchedule(*schedule, edges, credits);
  };
  EXPECT_TRUE(verify(4).ok()) << verify(4);
  EXPECT_THAT(verify(3).message(), HasSubstr("a free slot of forward edge 0 -> 1 (slots: 3, released after"));
}

}  // namespace
}  // namespace pipeloom
