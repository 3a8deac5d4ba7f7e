// Step graphs as a framework brings them: of small ops, with an update of its own whose factors change.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/runtime/train.h"
#include "tests/testlib/small_session.h"

namespace pipeloom {
namespace {

constexpr int kClasses = 7;

// Attention of two heads over four places, and a mean cross-entropy of its single steps.
const Network& Attention() {
  static const Network& network =
      *new Network{R"(
graph @step(%x: f32[{rows},24] {batch_axis=0}, %label: i32[{rows},1] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %wq = param "a.query" : f32[24,24]
  %wk = param "a.key" : f32[24,24]
  %wv = param "b.value" : f32[24,24]
  %wo = param "c.weight" : f32[24,7]
  %q1 = matmul(%x, %wq) : f32[{rows},24]  // a, forward
  %q2 = reshape(%q1) {shape=[{rows},2,4,3]} : f32[{rows},2,4,3]  // a, forward
  %k1 = matmul(%x, %wk) : f32[{rows},24]  // a, forward
  %k2 = reshape(%k1) {shape=[{rows},2,4,3]} : f32[{rows},2,4,3]  // a, forward
  %s = batch_matmul(%q2, %k2) {transpose_b} : f32[{rows},2,4,4]  // a, forward
  %p = softmax(%s) : f32[{rows},2,4,4]  // b, forward
  %v1 = matmul(%x, %wv) : f32[{rows},24]  // b, forward
  %v2 = reshape(%v1) {shape=[{rows},2,4,3]} : f32[{rows},2,4,3]  // b, forward
  %c1 = batch_matmul(%p, %v2) : f32[{rows},2,4,3]  // b, forward
  %c2 = transpose(%c1) {perm=[0,2,1,3]} : f32[{rows},4,2,3]  // b, forward
  %c3 = reshape(%c2) {shape=[{rows},24]} : f32[{rows},24]  // c, forward
  %y = matmul(%c3, %wo) : f32[{rows},7]  // c, forward
  %top = reduce_max(%y) {axes=[1], keep_dims} : f32[{rows},1]  // c, forward
  %rest = sub(%y, %top) : f32[{rows},7]  // c, forward
  %e = exp(%rest) : f32[{rows},7]  // c, forward
  %sum = reduce_sum(%e) {axes=[1], keep_dims} : f32[{rows},1]  // c, forward
  %log = log(%sum) : f32[{rows},1]  // c, forward
  %logs = sub(%rest, %log) : f32[{rows},7]  // c, forward
  %picked = gather_along_axis(%logs, %label) {axis=1} : f32[{rows},1]  // c, forward
  %mean = reduce_mean(%picked) : f32[]  // c, forward
  %loss = neg(%mean) : f32[]  // c, forward
} update sgd {lr=0.1, momentum=0.9}
)",
                   {"a", "b", "c"},
                   {"a.query", "a.key", "b.value", "c.weight", "accum.a.key", "accum.b.value"}};
  return network;
}

TEST(AttentionTest, SameBitsOverStagesAndSchedules) {
  for (const int micro_batches : {1, 4}) {
    const auto one = TrainPipelined(Attention(), 20, 4, kClasses, {1, "gpipe", micro_batches});
    ASSERT_TRUE(one.ok()) << one.status();
    for (int stages = 1; stages <= 3; ++stages) {
      for (const char* schedule : {"gpipe", "1f1b", "interleaved"}) {
        const auto other = TrainPipelined(Attention(), 20, 4, kClasses, {stages, schedule, micro_batches});
        ASSERT_TRUE(other.ok()) << other.status();
        EXPECT_TRUE(*other == *one) << stages << " stages, " << schedule << ", " << micro_batches << " micro-batches";
      }
    }
  }
}

TEST(AttentionTest, SameNumbersAsPlainLoopsInDouble) {
  const Trained reference = TrainReference(Attention(), 20, 4, kClasses);
  const auto trained = TrainPipelined(Attention(), 20, 4, kClasses, {2, "1f1b", 4});
  ASSERT_TRUE(trained.ok()) << trained.status();
  ASSERT_EQ(trained->losses.size(), reference.losses.size());
  for (size_t i = 0; i < reference.losses.size(); ++i) {
    EXPECT_NEAR(trained->losses[i], reference.losses[i], 1e-5 * std::abs(reference.losses[i])) << "step " << i;
  }
  for (const auto& [name, values] : reference.parameters) {
    float largest = 0;
    for (float value : values) largest = std::max(largest, std::abs(value));
    const std::vector<float>& ours = trained->parameters.at(name);
    ASSERT_EQ(ours.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(ours[i], values[i], 2e-5 * largest) << name << " " << i;
  }
}

// y = x a b, row by row, summed. Adam for a, whose powers of beta are parameters; momentum for b; and a rate that is
// halved in each step, by a count of steps.
std::string OwnUpdate(int stages) {
  return absl::StrCat(R"(
pipeline {micro_batches=2, schedule="1f1b", stages=)",
                      stages, R"(, threads=1}
stage "a" = 0
stage "b" = )",
                      stages - 1, R"(
graph @step(%x: f32[2,3] {batch_axis=0}) -> (%loss {reduce="sum"}) {
  %a = param "a.weight" : f32[3]
  %b = param "b.weight" : f32[3]
  %m = param "a.moment1" {trainable=false} : f32[3]
  %v = param "a.moment2" {trainable=false} : f32[3]
  %accum = param "b.accum" {trainable=false} : f32[3]
  %power1 = param "beta1_power" {trainable=false} : f32[]
  %power2 = param "beta2_power" {trainable=false} : f32[]
  %count = param "global_step" {trainable=false} : i32[]
  %seed = constant 1.0 : f32[]
  %half = constant 0.5 : f32[]
  %base = constant 0.25 : f32[]
  %beta1 = constant 0.5 : f32[]
  %beta2 = constant 0.75 : f32[]
  %eps = constant 0.125 : f32[]
  %one = constant 1 : i32[]
  %h = mul(%x, %a) : f32[2,3]  // a, forward
  %y = mul(%h, %b) : f32[2,3]  // b, forward
  %loss = reduce_sum(%y) : f32[]  // b, forward
  %d.y = broadcast_to(%seed) {shape=[2,3]} : f32[2,3]  // b, backward
  %d.b.rows = mul(%d.y, %h) : f32[2,3]  // b, backward
  %d.b = reduce_sum(%d.b.rows) {axes=[0]} : f32[3]  // b, backward
  %d.h = mul(%d.y, %b) : f32[2,3]  // b, backward
  %d.a.rows = mul(%d.h, %x) : f32[2,3]  // a, backward
  %d.a = reduce_sum(%d.a.rows) {axes=[0]} : f32[3]  // a, backward
  %steps = cast(%count) {to="f32"} : f32[]  // update
  %decay = pow(%half, %steps) : f32[]  // update
  %lr = mul(%base, %decay) : f32[]  // update
  %next1 = mul(%power1, %beta1) : f32[]  // update
  %next2 = mul(%power2, %beta2) : f32[]  // update
  assign_add(%count, %one)  // update
  assign(%power1, %next1)  // update
  assign(%power2, %next2)  // update
  apply_adam(%a, %d.a, %m, %v, %next1, %next2, %lr, %beta1, %beta2, %eps)  // a, update
  apply_momentum(%b, %d.b, %accum, %lr, %half)  // b, update
}
)");
}

constexpr int kSteps = 4;
const std::vector<double>& Rows() {
  static const auto& rows = *new std::vector<double>{1, 2, 3, -1, 0.5, 2, 0.25, -2, 1, 3, 1, -1};
  return rows;
}

struct OwnSteps {
  std::vector<float> losses, a, b, powers;
};

OwnSteps RunOwnUpdate(int stages) {
  auto session = SmallSession::Start(OwnUpdate(stages));
  EXPECT_TRUE(session.ok()) << session.status();
  OwnSteps steps;
  if (!session.ok()) return steps;
  EXPECT_TRUE(session->Write("a.weight", {0.5f, -0.25f, 1.f}).ok());
  EXPECT_TRUE(session->Write("b.weight", {1.f, 0.75f, -0.5f}).ok());
  EXPECT_TRUE(session->Write("beta1_power", {1.f}).ok());
  EXPECT_TRUE(session->Write("beta2_power", {1.f}).ok());
  for (int step = 0; step < kSteps; ++step) {
    const auto loss = session->Step({Rows()});
    EXPECT_TRUE(loss.ok()) << loss.status();
    steps.losses.push_back(loss.ok() ? *loss : 0);
  }
  steps.a = session->Read("a.weight");
  steps.b = session->Read("b.weight");
  for (const std::vector<float>& copy : session->ReadCopies("beta1_power")) {
    EXPECT_EQ(copy, session->Read("beta1_power"));
  }
  steps.powers = {session->Read("beta1_power")[0], session->Read("beta2_power")[0]};
  return steps;
}

TEST(OwnUpdateTest, SameBitsOverStages) {
  const OwnSteps one = RunOwnUpdate(1);
  const OwnSteps two = RunOwnUpdate(2);
  EXPECT_EQ(two.losses, one.losses);
  EXPECT_EQ(two.a, one.a);
  EXPECT_EQ(two.b, one.b);
  EXPECT_EQ(two.powers, one.powers);
}

TEST(OwnUpdateTest, SameNumbersAsPlainLoopsInDouble) {
  const OwnSteps ours = RunOwnUpdate(2);
  double a[] = {0.5, -0.25, 1}, b[] = {1, 0.75, -0.5}, m[3] = {}, v[3] = {}, accum[3] = {};
  for (int step = 0; step < kSteps; ++step) {
    const double lr = 0.25 * std::pow(0.5, step);
    const double correction = std::sqrt(1 - std::pow(0.75, step + 1)) / (1 - std::pow(0.5, step + 1));
    double loss = 0;
    for (int i = 0; i < 3; ++i) {
      double x = 0;
      for (int row = 0; row < 4; ++row) x += Rows()[row * 3 + i];
      loss += x * a[i] * b[i];
      const double by_a = x * b[i];
      const double by_b = x * a[i];
      m[i] = 0.5 * m[i] + 0.5 * by_a;
      v[i] = 0.75 * v[i] + 0.25 * by_a * by_a;
      a[i] -= lr * correction * m[i] / (std::sqrt(v[i]) + 0.125);
      accum[i] = 0.5 * accum[i] + by_b;
      b[i] -= lr * accum[i];
    }
    EXPECT_NEAR(ours.losses[step], loss, 1e-5 * std::abs(loss)) << "step " << step;
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(ours.a[i], a[i], 1e-5);
    EXPECT_NEAR(ours.b[i], b[i], 1e-5);
  }
  EXPECT_EQ(ours.powers, (std::vector<float>{0.0625f, 0.31640625f}));
}

}  // namespace
}  // namespace pipeloom
