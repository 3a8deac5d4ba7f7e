// One network trains to the same bits however it is cut, and to the same numbers as plain loops in double.

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/train.h"
#include "tests/testlib/small_session.h"

namespace pipeloom {
namespace {

constexpr int kClasses = 7;

// Biases, each activation, momentum.
const Network& Mlp() {
  static const Network& network =
      *new Network{R"(
graph @step(%x: f32[{rows},13] {batch_axis=0}, %label: i32[{rows}] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %w1 = param "a.weight" : f32[13,24]
  %b1 = param "a.bias" : f32[24]
  %w2 = param "b.weight" : f32[16,24]
  %b2 = param "b.bias" : f32[16]
  %w3 = param "c.weight" : f32[16,7]
  %h1 = matmul(%x, %w1) : f32[{rows},24]  // a, forward
  %h2 = add(%h1, %b1) : f32[{rows},24]  // a, forward
  %h3 = relu(%h2) : f32[{rows},24]  // a, forward
  %h4 = matmul(%h3, %w2) {transpose_b} : f32[{rows},16]  // b, forward
  %h5 = add(%h4, %b2) : f32[{rows},16]  // b, forward
  %h6 = gelu(%h5) : f32[{rows},16]  // b, forward
  %h7 = tanh(%h6) : f32[{rows},16]  // c, forward
  %y = matmul(%h7, %w3) : f32[{rows},7]  // c, forward
  %loss = softmax_cross_entropy(%y, %label) : f32[]  // forward
} update sgd {lr=0.1, momentum=0.9, nesterov, weight_decay=0.01}
)",
                   {"a", "b", "c"},
                   {"a.weight", "a.bias", "b.weight", "b.bias", "c.weight", "accum.a.weight", "accum.b.bias"}};
  return network;
}

// The first and the last layer share a weight, and a value skips the middle.
const Network& Tied() {
  static const Network& network = *new Network{R"(
graph @step(%x: f32[{rows},7] {batch_axis=0}, %label: i32[{rows}] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %w = param "table" : f32[7,12]
  %v = param "middle" : f32[12,12]
  %h1 = matmul(%x, %w) : f32[{rows},12]  // first, forward
  %h2 = sigmoid(%h1) : f32[{rows},12]  // first, forward
  %h3 = matmul(%h2, %v) : f32[{rows},12]  // middle, forward
  %h4 = relu(%h3) : f32[{rows},12]  // middle, forward
  %h5 = add(%h4, %h2) : f32[{rows},12]  // last, forward
  %y = matmul(%h5, %w) {transpose_b} : f32[{rows},7]  // last, forward
  %loss = softmax_cross_entropy(%y, %label) : f32[]  // forward
} update adam {lr=0.01}
)",
                                               {"first", "middle", "last"},
                                               {"table", "middle", "moment1.table", "moment2.middle"}};
  return network;
}

// Sums, a product and the loss stand in the outermost cell, over all stages; the first use of a shared weight is dead.
const Network& Outermost() {
  static const Network& network = *new Network{R"(
graph @step(%x: f32[{rows},12] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %w1 = param "a.weight" : f32[12,12]
  %w2 = param "b.weight" : f32[12,12]
  %w3 = param "c.weight" : f32[12,12]
  %dead = matmul(%x, %w3) : f32[{rows},12]  // a, forward
  %h1 = matmul(%x, %w1) : f32[{rows},12]  // a, forward
  %h2 = tanh(%h1) : f32[{rows},12]  // forward
  %h3 = matmul(%h2, %w2) : f32[{rows},12]  // b, forward
  %h4 = add(%h3, %h2) : f32[{rows},12]  // forward
  %h5 = matmul(%h4, %w3) : f32[{rows},12]  // c, forward
  %h6 = add(%h5, %h4) : f32[{rows},12]  // forward
  %h7 = mul(%h2, %h6) : f32[{rows},12]  // forward
  %h8 = mul(%h7, %h7) : f32[{rows},12]  // forward
  %loss = reduce_mean(%h8) : f32[]  // forward
} update sgd {lr=0.1, momentum=0.5}
)",
                                               {"a", "b", "c"},
                                               {"a.weight", "b.weight", "c.weight", "accum.c.weight"}};
  return network;
}

// Weights of the outermost cell, one of them made ready for another stage; a stage that only shows a value under
// another type; a parameter whose gradient is the loss's own.
const Network& OutermostWeights() {
  static const Network& network = *new Network{R"(
graph @step(%x: f32[{rows},12] {batch_axis=0}, %t: f32[{rows},7] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %w0 = param "w0" : f32[12,12]
  %w1 = param "w1" : f32[12,12]
  %w2 = param "w2" : f32[7,12]
  %p = param "p" : f32[]
  %w2t = transpose(%w2) {perm=[1,0]} : f32[12,7]  // forward
  %a = matmul(%x, %w0) : f32[{rows},12]  // forward
  %y = matmul(%a, %w1) : f32[{rows},12]  // forward
  %f = reshape(%y) {shape=[{rows},12]} : f32[{rows},12]  // b, forward
  %z = matmul(%f, %w2t) : f32[{rows},7]  // c, forward
  %l = mse(%z, %t) : f32[]  // c, forward
  %loss = add(%l, %p) : f32[]  // c, forward
} update sgd {lr=0.1}
)",
                                               {"", "b", "c"},
                                               {"w0", "w1", "w2", "p"}};
  return network;
}

// Normalized rows, of one axis and of two, with the weights of a normalization given another type in one place; gates
// that are a softmax and logarithms of one; a decay beside the gradients. With a smaller eps the quotient of Adam
// magnifies the rounding of gradients that nearly cancel.
const Network& Normalized() {
  static const Network& network =
      *new Network{R"(
graph @step(%x: f32[{rows},12] {batch_axis=0}, %t: f32[{rows},7] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %w1 = param "a.weight" : f32[12,20]
  %g1 = param "a.gamma" : f32[20]
  %s1 = param "a.beta" : f32[20]
  %w2 = param "b.weight" : f32[20,20]
  %g2 = param "b.gamma" : f32[4,5]
  %s2 = param "b.beta" : f32[4,5]
  %g3 = param "c.gamma" : f32[5]
  %s3 = param "c.beta" : f32[5]
  %w3 = param "c.weight" : f32[20,7]
  %h1 = matmul(%x, %w1) : f32[{rows},20]  // a, forward
  %n1 = layer_norm(%h1, %g1, %s1) : f32[{rows},20]  // a, forward
  %h2 = matmul(%n1, %w2) : f32[{rows},20]  // b, forward
  %g2.row = reshape(%g2) {shape=[20]} : f32[20]  // b, forward
  %s2.row = reshape(%s2) {shape=[20]} : f32[20]  // b, forward
  %n2 = layer_norm(%h2, %g2.row, %s2.row) {eps=0.001} : f32[{rows},20]  // b, forward
  %h3 = softmax(%n2) : f32[{rows},20]  // b, forward
  %h4 = mul(%n1, %h3) : f32[{rows},20]  // c, forward
  %h5 = reshape(%h4) {shape=[{rows},4,5]} : f32[{rows},4,5]  // c, forward
  %n3 = layer_norm(%h5, %g3, %s3) : f32[{rows},4,5]  // c, forward
  %h6 = reshape(%n3) {shape=[{rows},20]} : f32[{rows},20]  // c, forward
  %y = matmul(%h6, %w3) : f32[{rows},7]  // c, forward
  %logs = log_softmax(%y) : f32[{rows},7]  // c, forward
  %loss = mse(%logs, %t) : f32[]  // forward
} update adamw {eps=0.001, lr=0.01, weight_decay=0.5}
)",
                   {"a", "b", "c"},
                   {"a.weight", "a.gamma", "a.beta", "b.weight", "b.gamma", "b.beta", "c.gamma", "c.beta", "c.weight",
                    "moment1.a.weight", "moment2.b.gamma", "moment2.c.weight", "step.b.weight"}};
  return network;
}

struct Case {
  const char* name;
  const Network& (*network)();
  int batch;
  int micro_batches;
};

class EquivalenceTest : public testing::TestWithParam<Case> {};

TEST_P(EquivalenceTest, SameBitsOverStagesAndSchedules) {
  const Case& c = GetParam();
  const auto one = TrainPipelined(c.network(), c.batch, 4, kClasses, {1, "gpipe", c.micro_batches});
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_EQ(one->losses.size(), 4u);
  for (int stages = 1; stages <= 3; ++stages) {
    for (const char* schedule : {"gpipe", "1f1b", "interleaved"}) {
      SCOPED_TRACE(absl::StrCat(stages, " stages, ", schedule));
      const auto other = TrainPipelined(c.network(), c.batch, 4, kClasses, {stages, schedule, c.micro_batches});
      ASSERT_TRUE(other.ok()) << other.status();
      EXPECT_EQ(other->losses, one->losses);
      for (const auto& [name, values] : one->parameters) EXPECT_EQ(other->parameters.at(name), values) << name;
    }
  }
}

TEST_P(EquivalenceTest, SameNumbersAsPlainLoopsInDouble) {
  const Case& c = GetParam();
  const Trained reference = TrainReference(c.network(), c.batch, 4, kClasses);
  const auto trained = TrainPipelined(c.network(), c.batch, 4, kClasses, {2, "1f1b", c.micro_batches});
  ASSERT_TRUE(trained.ok()) << trained.status();
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

// Eight cells in a row; the first one's output also goes to the last, over all stages between.
Network LongSkip() {
  Network network;
  network.text = R"(
graph @step(%x: f32[{rows},6] {batch_axis=0}, %t: f32[{rows},6] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
)";
  for (int i = 0; i < 8; ++i) absl::StrAppend(&network.text, "  %w", i, " = param \"w", i, "\" : f32[6,6]\n");
  for (int i = 0; i < 8; ++i) {
    absl::StrAppend(&network.text, "  %a", i, " = matmul(%", i == 0 ? "x" : absl::StrCat("h", i - 1), ", %w", i,
                    ") : f32[{rows},6]  // cell", i, ", forward\n  %h", i, " = tanh(%a", i,
                    ") : f32[{rows},6]  // cell", i, ", forward\n");
    network.cells.push_back(absl::StrCat("cell", i));
    network.parameters.push_back(absl::StrCat("w", i));
  }
  absl::StrAppend(&network.text, R"(  %y = add(%h7, %h0) : f32[{rows},6]  // cell7, forward
  %loss = mse(%y, %t) : f32[]  // forward
} update sgd {lr=0.1}
)");
  return network;
}

TEST(LongSkipTest, SameBitsOverManyStages) {
  const Network network = LongSkip();
  for (const int micro_batches : {1, 8, 13}) {
    const auto one = TrainPipelined(network, micro_batches * 2, 2, kClasses, {1, "1f1b", micro_batches});
    ASSERT_TRUE(one.ok()) << one.status();
    for (const int stages : {2, 3, 4, 6, 8}) {
      for (const char* schedule : {"gpipe", "1f1b", "interleaved"}) {
        const auto other = TrainPipelined(network, micro_batches * 2, 2, kClasses, {stages, schedule, micro_batches});
        ASSERT_TRUE(other.ok()) << other.status();
        EXPECT_TRUE(*other == *one) << stages << " stages, " << schedule << ", " << micro_batches << " micro-batches";
      }
    }
  }
}

// Eight cells, of which the first and the last, the second and the fourth, and the third and the fifth have one weight:
// under interleaved each rank owns weights that another one uses too, and uses one weight in several chunks.
Network CrossTied() {
  Network network = LongSkip();
  for (const auto& [from, to] : {std::pair("w7", "w0"), std::pair("w3", "w1"), std::pair("w4", "w2")}) {
    network.text =
        absl::StrReplaceAll(network.text, {{absl::StrCat("  %", from, " = param \"", from, "\" : f32[6,6]\n"), ""},
                                           {absl::StrCat(", %", from, ")"), absl::StrCat(", %", to, ")")}});
  }
  network.parameters = {"w0", "w1", "w2", "w5", "w6"};
  return network;
}

TEST(CrossTiedTest, SameBitsWhereRanksOwnWeightsOfEachOther) {
  const Network network = CrossTied();
  for (const int micro_batches : {1, 3, 8}) {
    const auto one = TrainPipelined(network, micro_batches * 2, 3, kClasses, {1, "1f1b", micro_batches});
    ASSERT_TRUE(one.ok()) << one.status();
    for (const int stages : {2, 3, 4}) {
      for (const char* schedule : {"1f1b", "interleaved"}) {
        const auto other = TrainPipelined(network, micro_batches * 2, 3, kClasses, {stages, schedule, micro_batches});
        ASSERT_TRUE(other.ok()) << other.status();
        EXPECT_TRUE(*other == *one) << stages << " stages, " << schedule << ", " << micro_batches << " micro-batches";
      }
    }
  }
}

TEST(ForwardOnlyTest, TheMeanOverMicroBatchesIsAnOutputTooWhereNothingIsTrained) {
  auto session = SmallSession::Start(R"(
pipeline {micro_batches=2, schedule="forward"}
graph @step(%x: f32[2] {batch_axis=0}, %t: f32[2] {batch_axis=0}) -> (%loss {reduce="mean"}) {
  %loss = mse(%x, %t) : f32[]  // forward
}
)");
  ASSERT_TRUE(session.ok()) << session.status();
  const auto loss = session->Step({{1, 3, 2, 4}, {0, 0, 0, 0}});
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, 7.5f);  // of 5 and 10
}

INSTANTIATE_TEST_SUITE_P(
    Networks, EquivalenceTest,
    testing::Values(Case{"mlp_1", Mlp, 12, 1}, Case{"mlp_2", Mlp, 12, 2}, Case{"mlp_4", Mlp, 32, 4},
                    Case{"mlp_rows_of_50", Mlp, 250, 5}, Case{"mlp_rows_of_128", Mlp, 512, 4},
                    Case{"mlp_16", Mlp, 16, 16}, Case{"tied_1", Tied, 6, 1}, Case{"tied_3", Tied, 12, 3},
                    Case{"tied_4", Tied, 32, 4}, Case{"tied_rows_of_40", Tied, 440, 11},
                    Case{"outermost_4", Outermost, 32, 4}, Case{"outermost_11", Outermost, 33, 11},
                    Case{"outermost_weights_4", OutermostWeights, 32, 4},
                    Case{"outermost_weights_16", OutermostWeights, 48, 16}, Case{"normalized_1", Normalized, 12, 1},
                    Case{"normalized_4", Normalized, 32, 4}, Case{"normalized_rows_of_50", Normalized, 250, 5}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace pipeloom
