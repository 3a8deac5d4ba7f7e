// Faults that users of other pipelines met, as small cases with the right behaviour. Expected numbers are worked out by
// hand from the formulas.

#include <malloc.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/schedule/schedule_table.h"
#include "passes/schedule/verify_schedule.h"
#include "tests/testlib/small_session.h"

namespace pipeloom {
namespace {

using testing::ElementsAre;

// y = x w1 w2, loss = (y - t)^2, one row a micro-batch.
std::string TwoWeights(int stages, int micro_batches, const std::string& schedule, const std::string& frozen = "") {
  return absl::StrReplaceAll(R"(
pipeline {micro_batches=M, schedule="S", stages=P}
stage "a" = 0
stage "b" = B

graph @step(%x: f32[1,1] {batch_axis=0}, %t: f32[1,1] {batch_axis=0}) -> (%loss {reduce="mean"}) {
  %w1 = param "w1"FROZEN : f32[1,1]
  %w2 = param "w2" : f32[1,1]
  %h = matmul(%x, %w1) : f32[1,1]  // a, forward
  %y = matmul(%h, %w2) : f32[1,1]  // b, forward
  %loss = mse(%y, %t) : f32[]  // forward
} update sgd {lr=0.1}
)",
                             {{"M", absl::StrCat(micro_batches)},
                              {"S", schedule},
                              {"P", absl::StrCat(stages)},
                              {"B", absl::StrCat(stages - 1)},
                              {"FROZEN", frozen}});
}

TEST(SpineCases, mean_of_two_micro_batches_one_by_one) {
  for (const int stages : {1, 2}) {
    auto session = SmallSession::Start(TwoWeights(stages, 2, "1f1b"));
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE(session->Write("w1", {1}).ok());
    ASSERT_TRUE(session->Write("w2", {1}).ok());
    const auto loss = session->Step({{1, 1}, {0, 0}});
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_EQ(*loss, 1.0f);
    EXPECT_THAT(session->Read("w1"), ElementsAre(testing::FloatEq(0.8f))) << stages << " stages";
    EXPECT_THAT(session->Read("w2"), ElementsAre(testing::FloatEq(0.8f))) << stages << " stages";
  }
}

// The gradient of the first weight for 16 samples in `micro_batches` micro-batches, from one step with lr 1.
float GradientInMicroBatches(int micro_batches) {
  const int rows = 16 / micro_batches;
  const std::string text = absl::StrReplaceAll(R"(
pipeline {micro_batches=M, schedule="1f1b", stages=2}
stage "a" = 0
stage "b" = 1

graph @step(%x: f32[R,3] {batch_axis=0}, %t: f32[R,2] {batch_axis=0}) -> (%loss {reduce="mean"}) {
  %w1 = param "w1" : f32[3,4]
  %w2 = param "w2" : f32[4,2]
  %h = matmul(%x, %w1) : f32[R,4]  // a, forward
  %g = tanh(%h) : f32[R,4]  // a, forward
  %y = matmul(%g, %w2) : f32[R,2]  // b, forward
  %loss = mse(%y, %t) : f32[]  // forward
} update sgd {lr=1.0}
)",
                                               {{"M", absl::StrCat(micro_batches)}, {"R", absl::StrCat(rows)}});
  auto session = SmallSession::Start(text);
  EXPECT_TRUE(session.ok()) << session.status();
  std::vector<float> w1(12);
  std::vector<float> w2(8);
  for (size_t i = 0; i < w1.size(); ++i) w1[i] = 0.1f * static_cast<float>(i) - 0.5f;
  for (size_t i = 0; i < w2.size(); ++i) w2[i] = 0.3f - 0.1f * static_cast<float>(i);
  EXPECT_TRUE(session->Write("w1", w1).ok());
  EXPECT_TRUE(session->Write("w2", w2).ok());
  std::vector<double> x(48);
  std::vector<double> t(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 7) - 3;
  for (size_t i = 0; i < t.size(); ++i) t[i] = static_cast<double>(i % 5) - 2;
  EXPECT_TRUE(session->Step({x, t}).ok());
  return w1[5] - session->Read("w1")[5];
}

TEST(SpineCases, gradient_independent_of_micro_batch_count) {
  const float four = GradientInMicroBatches(4);
  EXPECT_NE(four, 0.0f);
  EXPECT_NEAR(GradientInMicroBatches(16), four, 1e-5 * std::abs(four));
}

TEST(SpineCases, same_gradient_for_1_2_4_micro_batches) {
  const float one = GradientInMicroBatches(1);
  EXPECT_NE(one, 0.0f);
  EXPECT_NEAR(GradientInMicroBatches(2), one, 1e-5 * std::abs(one));
  EXPECT_NEAR(GradientInMicroBatches(4), one, 1e-5 * std::abs(one));
}

TEST(SpineCases, tied_copies_stay_equal) {
  auto session = SmallSession::Start(R"(
pipeline {micro_batches=2, schedule="1f1b", stages=2}
stage "first" = 0
stage "last" = 1

graph @step(%x: f32[3,2] {batch_axis=0}, %t: f32[3,2] {batch_axis=0}) -> (%loss {reduce="mean"}) {
  %w = param "table" : f32[2,5]
  %h = matmul(%x, %w) : f32[3,5]  // first, forward
  %y = matmul(%h, %w) {transpose_b} : f32[3,2]  // last, forward
  %loss = mse(%y, %t) : f32[]  // forward
} update sgd {lr=0.01, momentum=0.9}
)");
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Write("table", {.1f, -.2f, .3f, .4f, -.5f, .6f, .7f, -.8f, .9f, 1.f}).ok());
  std::vector<float> before = session->Read("table");
  for (int step = 0; step < 20; ++step) {
    const double s = step % 3;
    ASSERT_TRUE(session->Step({{s, 1, 2, -s, 3, 1, 1, 0, 2, 1, s, 2}, {1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 1}}).ok());
    const auto copies = session->ReadCopies("table");
    ASSERT_EQ(copies.size(), 2u);
    ASSERT_EQ(copies[0], copies[1]) << "step " << step;
    ASSERT_NE(copies[0], before) << "step " << step;
    before = copies[0];
  }
}

// A parameter added without broadcasting has the activation's gradient itself: nothing is left for W.
TEST(SpineCases, w_without_deferred_part) {
  auto session = SmallSession::Start(R"(
pipeline {micro_batches=2, schedule="1f1b", stages=2}
stage "shift" = 0
stage "b" = 1

graph @step(%x: f32[1,2] {batch_axis=0}, %t: f32[1,2] {batch_axis=0}) -> (%loss {reduce="sum"}) {
  %p = param "p" : f32[1,2]
  %h = add(%x, %p) : f32[1,2]  // shift, forward
  %y = neg(%h) : f32[1,2]  // b, forward
  %loss = mse(%y, %t) {reduction="sum"} : f32[]  // forward
} update sgd {lr=0.25}
)");
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Write("p", {1, 2}).ok());
  // d loss / d p = -2 (y - t), summed over the micro-batches: y is (-2, -2) and (-1, -4).
  ASSERT_TRUE(session->Step({{1, 0, 0, 2}, {0, 0, 0, 0}}).ok());
  EXPECT_THAT(session->Read("p"), ElementsAre(1 - 0.25f * 6, 2 - 0.25f * 12));
}

TEST(SpineCases, rendezvous_sends_1f1b) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    const auto schedule = MakeSchedule("1f1b", ranks, 8, 1);
    ASSERT_TRUE(schedule.ok());
    std::vector<CommunicationEdge> edges;
    std::vector<ChannelCredits> one_slot;
    for (int rank = 0; rank + 1 < ranks; ++rank) {
      edges.push_back({ChunkId(rank), ChunkId(rank + 1), true});
      edges.push_back({ChunkId(rank + 1), ChunkId(rank), false});
    }
    EXPECT_TRUE(VerifySchedule(*schedule, edges, one_slot).ok()) << ranks << " ranks";
  }
}

TEST(SpineCases, three_stages) {
  auto session = SmallSession::Start(R"(
pipeline {micro_batches=2, schedule="1f1b", stages=3}
stage "a" = 0
stage "b" = 1
stage "c" = 2

graph @step(%x: f32[1,1] {batch_axis=0}, %t: f32[1,1] {batch_axis=0}) -> (%loss {reduce="sum"}) {
  %w1 = param "w1" : f32[1,1]
  %w2 = param "w2" : f32[1,1]
  %w3 = param "w3" : f32[1,1]
  %h1 = matmul(%x, %w1) : f32[1,1]  // a, forward
  %h2 = matmul(%h1, %w2) : f32[1,1]  // b, forward
  %y = matmul(%h2, %w3) : f32[1,1]  // c, forward
  %loss = mse(%y, %t) : f32[]  // forward
} update sgd {lr=0.015625}
)");
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Write("w1", {1}).ok());
  ASSERT_TRUE(session->Write("w2", {2}).ok());
  ASSERT_TRUE(session->Write("w3", {4}).ok());
  // y = 8 x; with x = 1 and t = 0 in both micro-batches the loss is 2 * 64 and d loss / d w = 2 * 2 * 8 * 8 / w.
  const auto loss = session->Step({{1, 1}, {0, 0}});
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, 128.0f);
  EXPECT_THAT(session->Read("w1"), ElementsAre(1 - 256 / 64.0f));
  EXPECT_THAT(session->Read("w2"), ElementsAre(2 - 128 / 64.0f));
  EXPECT_THAT(session->Read("w3"), ElementsAre(4 - 64 / 64.0f));
}

TEST(SpineCases, no_growth_over_1000_steps) {
  auto session = SmallSession::Start(TwoWeights(2, 4, "1f1b"));
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<std::vector<double>> inputs = {{1, 2, 3, 4}, {0, 0, 0, 0}};
  for (int step = 0; step < 2; ++step) ASSERT_TRUE(session->Step(inputs).ok());
  const size_t before = mallinfo2().uordblks;
  for (int step = 0; step < 1000; ++step) ASSERT_TRUE(session->Step(inputs).ok());
  EXPECT_LE(mallinfo2().uordblks, before + 4096) << "bytes in use after 1,000 further steps";
}

TEST(SpineCases, two_steps_in_a_row) {
  auto session = SmallSession::Start(TwoWeights(2, 1, "gpipe"));
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Write("w1", {1}).ok());
  ASSERT_TRUE(session->Write("w2", {1}).ok());
  ASSERT_TRUE(session->Step({{1}, {0}}).ok());
  const auto second = session->Step({{1}, {0}});
  ASSERT_TRUE(second.ok()) << second.status();
  // Both weights are 0.8 after the first step: y = 0.64, and d loss / d w = 2 y 0.8.
  EXPECT_FLOAT_EQ(*second, 0.64f * 0.64f);
  EXPECT_THAT(session->Read("w1"), ElementsAre(testing::FloatEq(0.8f - 0.1f * 2 * 0.64f * 0.8f)));
}

TEST(SpineCases, frozen_first_stage) {
  for (const char* schedule : {"1f1b", "gpipe"}) {
    auto session = SmallSession::Start(TwoWeights(2, 2, schedule, " {trainable=false}"));
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE(session->Write("w1", {1}).ok());
    ASSERT_TRUE(session->Write("w2", {1}).ok());
    ASSERT_TRUE(session->Step({{1, 1}, {0, 0}}).ok());
    EXPECT_THAT(session->Read("w1"), ElementsAre(1.0f));
    EXPECT_THAT(session->Read("w2"), ElementsAre(testing::FloatEq(0.8f)));
  }
}

}  // namespace
}  // namespace pipeloom
