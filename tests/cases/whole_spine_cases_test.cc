// Faults that users of other pipelines met, of graphs, batches and schedules, as small cases with the right behaviour.
// Expected numbers are worked out by hand from the formulas.

#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/schedule/schedule_table.h"
#include "passes/schedule/simulate.h"
#include "passes/schedule/verify_schedule.h"
#include "plugin/cells/layers.h"
#include "plugin/cells/losses.h"
#include "plugin/cells/trainer.h"
#include "tests/runtime/train.h"
#include "tests/testlib/random_graph.h"
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

// y = x w1 w2 with the targets 0, in the mean over 4 samples.
TEST(WholeSpineCases, w_result_used_by_a_caller) {
  DenseOptions one;
  one.has_bias = false;
  one.weight_init = Ones();
  for (const int stages : {1, 2}) {
    for (const int micro_batches : {1, 4}) {
      auto net = std::make_shared<SequentialCell>();
      net->Append<Dense>(1, 1, one).SetPipelineStage(0);
      net->Append<Dense>(1, 1, one).SetPipelineStage(stages - 1);
      const Pipeline pipeline(std::make_shared<WithLossCell>(net, std::make_shared<MSELoss>()), micro_batches);
      TrainerOptions options;
      options.stages = stages;
      options.table = nullptr;
      auto trainer = Trainer::Create(pipeline, SGD(net->TrainableParams(), 0.0625, 0.5), options);
      ASSERT_TRUE(trainer.ok()) << trainer.status();
      Tensor x(TensorType{DType::kFloat32, {4, 1}});
      Tensor target(x.type());
      std::iota(x.data<float>(), x.data<float>() + 4, 1.0f);
      std::fill_n(target.data<float>(), 4, 0.0f);
      // For both weights w: the loss is 7.5 w^4, and its gradient by each is the mean of 2 y x w, 15 w^3. The first
      // step makes them 1 - 15 / 16.
      TensorMap gradients;
      for (const double w : {1.0, 0.0625}) {
        const auto loss = (*trainer)->StepWithGradients({x.view(), target.view()}, &gradients);
        ASSERT_TRUE(loss.ok()) << loss.status();
        EXPECT_FLOAT_EQ(*loss, static_cast<float>(7.5 * std::pow(w, 4)));
        ASSERT_EQ(gradients.size(), 2u);
        for (const char* name : {"0.weight", "1.weight"}) {
          EXPECT_FLOAT_EQ(gradients.at(name).data<float>()[0], static_cast<float>(15 * std::pow(w, 3))) << name;
        }
      }
      // The update is that of Step: by the gradient and by half of the one before it.
      const auto weights = (*trainer)->ReadParameters();
      ASSERT_TRUE(weights.ok()) << weights.status();
      EXPECT_FLOAT_EQ(weights->at("0.weight").data<float>()[0],
                      static_cast<float>(0.0625 - 0.0625 * (15 * std::pow(0.0625, 3) + 0.5 * 15)));
    }
  }
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

// ----- interleaved

// Six cells, dealt out to three stages in turn: six chunks.
Network SixCells() {
  Network network;
  network.text = R"(
graph @step(%x: f32[{rows},5] {batch_axis=0}, %t: f32[{rows},5] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
)";
  std::string nodes;
  for (int i = 0; i < 6; ++i) {
    absl::StrAppend(&network.text, "  %w", i, " = param \"w", i, "\" : f32[5,5]\n");
    absl::StrAppend(&nodes, "  %a", i, " = matmul(%", i == 0 ? "x" : absl::StrCat("h", i - 1), ", %w", i,
                    ") : f32[{rows},5]  // cell", i, ", forward\n  %h", i, " = tanh(%a", i,
                    ") : f32[{rows},5]  // cell", i, ", forward\n");
    network.cells.push_back(absl::StrCat("cell", i));
    network.parameters.push_back(absl::StrCat("w", i));
  }
  absl::StrAppend(&network.text, nodes, "  %loss = mse(%h5, %t) : f32[]  // forward\n} update sgd {lr=0.1}\n");
  return network;
}

TEST(WholeSpineCases, interleaved_fewer_micro_batches_than_stages) {
  const Network network = SixCells();
  for (const int micro_batches : {1, 2, 3}) {
    const int batch = 2 * micro_batches;
    const auto one = TrainPipelined(network, batch, 3, 1, {1, "1f1b", micro_batches});
    ASSERT_TRUE(one.ok()) << one.status();
    const Layout dealt{3, "interleaved", micro_batches, {0, 1, 2, 0, 1, 2}};
    const auto program = Compile(BuildModule(network, batch, dealt), {});
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->schedule.chunks(), 6);
    const auto three = TrainPipelined(network, batch, 3, 1, dealt);
    ASSERT_TRUE(three.ok()) << three.status();
    EXPECT_TRUE(*three == *one) << micro_batches << " micro-batches";
  }
}

TEST(WholeSpineCases, interleaved_runs_what_1f1b_runs) {
  for (uint64_t seed = 1000; seed < 1020; ++seed) {
    const RandomGraph graph = MakeRandomGraph(seed);
    const Network network{graph.text, graph.cells, graph.parameters};
    const int batch = graph.rows * graph.micro_batches;
    RandomChoice choice(seed);
    const std::vector<int> in_order = RandomStages(choice, static_cast<int>(graph.cells.size()), 3);
    const auto by_1f1b = TrainPipelined(network, batch, 2, graph.classes, {3, "1f1b", graph.micro_batches, in_order});
    ASSERT_TRUE(by_1f1b.ok()) << by_1f1b.status() << " of seed " << seed;
    // On the same stages, and dealt out in turn.
    for (const std::vector<int>& stages : {in_order, std::vector<int>()}) {
      const auto interleaved =
          TrainPipelined(network, batch, 2, graph.classes, {3, "interleaved", graph.micro_batches, stages});
      ASSERT_TRUE(interleaved.ok()) << interleaved.status() << " of seed " << seed;
      EXPECT_TRUE(*interleaved == *by_1f1b) << "seed " << seed;
    }
  }
}

// The two ranks are each other's next and previous one, twice.
TEST(WholeSpineCases, two_ranks_two_chunks_rendezvous) {
  std::vector<CommunicationEdge> edges;
  std::vector<ChannelCredits> one_slot;
  for (int chunk = 0; chunk < 3; ++chunk) {
    edges.push_back({ChunkId(chunk), ChunkId(chunk + 1), true});
    edges.push_back({ChunkId(chunk + 1), ChunkId(chunk), false});
  }
  for (const CommunicationEdge& edge : edges) {
    one_slot.push_back({edge, 1, edge.forward ? ActionKind::kForward : ActionKind::kBackwardInput, 1});
  }
  for (int micro_batches = 1; micro_batches <= 16; ++micro_batches) {
    const auto schedule = MakeSchedule("interleaved", 2, micro_batches, 2);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_TRUE(VerifySchedule(*schedule, edges, one_slot).ok()) << micro_batches << " micro-batches";
  }
  auto session = SmallSession::Start(R"(
pipeline {micro_batches=3, schedule="interleaved", stages=2}
stage "a" = 0
stage "b" = 1
stage "c" = 0
stage "d" = 1

graph @step(%x: f32[1,1] {batch_axis=0}, %t: f32[1,1] {batch_axis=0}) -> (%loss {reduce="sum"}) {
  %w1 = param "w1" : f32[1,1]
  %w2 = param "w2" : f32[1,1]
  %w3 = param "w3" : f32[1,1]
  %w4 = param "w4" : f32[1,1]
  %h1 = matmul(%x, %w1) : f32[1,1]  // a, forward
  %h2 = matmul(%h1, %w2) : f32[1,1]  // b, forward
  %h3 = matmul(%h2, %w3) : f32[1,1]  // c, forward
  %y = matmul(%h3, %w4) : f32[1,1]  // d, forward
  %loss = mse(%y, %t) : f32[]  // forward
} update sgd {lr=0.0009765625}
)");
  ASSERT_TRUE(session.ok()) << session.status();
  std::set<std::tuple<int, int, int>> channels;  // source, destination, tag
  int sends = 0;
  for (const RankProgram& rank : session->program().ranks) {
    for (const RankChannel& channel : rank.channels) {
      if (!channel.sends) continue;
      ++sends;
      channels.insert({channel.spec.source.value(), channel.spec.destination.value(), channel.spec.tag.value()});
    }
  }
  EXPECT_EQ(sends, 6);
  EXPECT_EQ(channels.size(), 6u) << "two values travel under one tag";
  // y = 8 x with these weights; the loss is 64 (1 + 4 + 9) and d loss / d w is 2 * 64 * 14 / w.
  ASSERT_TRUE(session->Write("w1", {1}).ok());
  ASSERT_TRUE(session->Write("w2", {2}).ok());
  ASSERT_TRUE(session->Write("w3", {4}).ok());
  ASSERT_TRUE(session->Write("w4", {1}).ok());
  const auto loss = session->Step({{1, 2, 3}, {0, 0, 0}});
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, 64.0f * 14);
  EXPECT_THAT(session->Read("w1"), ElementsAre(FloatEq(1 - 1.75f)));
  EXPECT_THAT(session->Read("w2"), ElementsAre(FloatEq(2 - 1.75f / 2)));
  EXPECT_THAT(session->Read("w3"), ElementsAre(FloatEq(4 - 1.75f / 4)));
  EXPECT_THAT(session->Read("w4"), ElementsAre(FloatEq(1 - 1.75f)));
}

// (p - 1)(F + B) / v, where the ranks divide the micro-batches.
TEST(WholeSpineCases, interleaved_bubble_as_formula) {
  const ChunkCosts whole{2, 3, 1, 1};  // of a rank's share
  int shapes = 0;
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (int chunks = 1; chunks <= 4; ++chunks) {
      for (int micro_batches = ranks; micro_batches <= 16; micro_batches += ranks) {
        const auto schedule = MakeSchedule("interleaved", ranks, micro_batches, chunks);
        ASSERT_TRUE(schedule.ok()) << schedule.status();
        ScheduleCosts costs;
        costs.chunks.assign(static_cast<size_t>(ranks * chunks),
                            {whole.forward / chunks, whole.input_gradient / chunks, whole.weight_gradient / chunks, 1});
        for (int chunk = 0; chunk + 1 < ranks * chunks; ++chunk) {
          costs.edges.push_back({{ChunkId(chunk), ChunkId(chunk + 1), true}, 0});
          costs.edges.push_back({{ChunkId(chunk + 1), ChunkId(chunk), false}, 0});
        }
        const auto simulation = Simulate(*schedule, costs);
        ASSERT_TRUE(simulation.ok()) << simulation.status();
        EXPECT_NEAR(simulation->bubble[1], (ranks - 1) * (2 + 3 + 1.0) / chunks, 1e-9)
            << ranks << " ranks, " << chunks << " chunks a rank, " << micro_batches << " micro-batches";
        ++shapes;
      }
    }
  }
  EXPECT_EQ(shapes, 4 * (8 + 5 + 4 + 3 + 2 + 2 + 2));
}

}  // namespace
}  // namespace pipeloom
