// Faults that users of other pipelines met, of values that are no activations: masks, ids, tables, tuples, token
// counts. Each network trains to the same bits on 1 to 3 stages under every schedule, and to what plain loops in double
// over the whole batch at once come to.

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "passes/schedule/schedule_table.h"
#include "tests/runtime/train.h"
#include "tests/testlib/small_session.h"

namespace pipeloom {
namespace {

constexpr int kBatch = 8;
constexpr int kSteps = 3;
constexpr int kClasses = 5;  // labels and ids are below it

void ExpectNear(const std::vector<float>& got, const std::vector<float>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-5 * std::max(1.0f, std::abs(want[i]))) << what;
}

void ExpectTrainsAlike(const Network& network) {
  for (const int micro_batches : {1, 4}) {
    const auto one = TrainPipelined(network, kBatch, kSteps, kClasses, {1, "gpipe", micro_batches});
    ASSERT_TRUE(one.ok()) << one.status();
    const Trained reference = TrainReference(network, kBatch, kSteps, kClasses);
    ExpectNear(one->losses, reference.losses, "losses");
    for (const auto& [name, values] : reference.parameters) ExpectNear(one->parameters.at(name), values, name);
    EXPECT_NE(one->losses.front(), one->losses.back());
    for (const ScheduleInfo& schedule : ScheduleTable()) {
      if (!schedule.trains) continue;
      for (int stages = 1; stages <= static_cast<int>(network.cells.size()); ++stages) {
        const auto other =
            TrainPipelined(network, kBatch, kSteps, kClasses, {stages, std::string(schedule.name), micro_batches});
        ASSERT_TRUE(other.ok()) << schedule.name << ", " << stages << " stages: " << other.status();
        EXPECT_TRUE(*other == *one) << schedule.name << ", " << stages << " stages, " << micro_batches
                                    << " micro-batches";
      }
    }
  }
}

TEST(WholeSpineOps, float_that_needs_no_gradient) {
  ExpectTrainsAlike({R"(
graph @step(%x: f32[{rows},6] {batch_axis=0}, %label: i64[{rows}] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %w1 = param "w1" : f32[6,6]
  %w2 = param "w2" : f32[6,6]
  %w3 = param "w3" : f32[6,5]
  %zero = constant 0.0 : f32[]
  %h1 = matmul(%x, %w1) : f32[{rows},6]  // a, forward
  %above = greater(%x, %zero) : bool[{rows},6]  // a, forward
  %mask = cast(%above) {to="f32"} : f32[{rows},6]  // a, forward
  %h2 = matmul(%h1, %w2) : f32[{rows},6]  // b, forward
  %h3 = mul(%h2, %mask) : f32[{rows},6]  // c, forward
  %h4 = where(%above, %h3, %h2) : f32[{rows},6]  // c, forward
  %y = matmul(%h4, %w3) : f32[{rows},5]  // c, forward
  %loss = softmax_cross_entropy(%y, %label) : f32[]  // c, forward
} update sgd {lr=0.5}
)",
                     {"a", "b", "c"},
                     {"w1", "w2", "w3"}});
}

TEST(WholeSpineOps, ids_passed_on) {
  ExpectTrainsAlike({R"(
graph @step(%ids: i64[{rows},2] {batch_axis=0}, %label: i32[{rows}] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %first = param "first" : f32[5,4]
  %w = param "w" : f32[8,8]
  %second = param "second" : f32[6,4]
  %v = param "v" : f32[8,5]
  %one = constant 1 : i64[]
  %e1 = gather(%first, %ids) : f32[{rows},2,4]  // a, forward
  %next = add(%ids, %one) : i64[{rows},2]  // a, forward
  %h1 = reshape(%e1) {shape=[{rows},8]} : f32[{rows},8]  // a, forward
  %h2 = matmul(%h1, %w) : f32[{rows},8]  // b, forward
  %e2 = gather(%second, %next) : f32[{rows},2,4]  // c, forward
  %h3 = reshape(%e2) {shape=[{rows},8]} : f32[{rows},8]  // c, forward
  %h4 = add(%h2, %h3) : f32[{rows},8]  // c, forward
  %h5 = tanh(%h4) : f32[{rows},8]  // c, forward
  %y = matmul(%h5, %v) : f32[{rows},5]  // c, forward
  %loss = softmax_cross_entropy(%y, %label) : f32[]  // c, forward
} update sgd {lr=0.5, momentum=0.5}
)",
                     {"a", "b", "c"},
                     {"first", "w", "second", "v"}});
}

TEST(WholeSpineOps, tuple_of_three) {
  ExpectTrainsAlike({R"(
graph @step(%x: f32[{rows},6] {batch_axis=0}, %t: f32[{rows},6] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %w1 = param "w1" : f32[6,6]
  %w2 = param "w2" : f32[6,6]
  %w3 = param "w3" : f32[6,6]
  %p = matmul(%x, %w1) : f32[{rows},6]  // a, forward
  %q = tanh(%p) : f32[{rows},6]  // a, forward
  %r = sigmoid(%p) : f32[{rows},6]  // a, forward
  %p2 = matmul(%p, %w2) : f32[{rows},6]  // b, forward
  %q2 = mul(%q, %r) : f32[{rows},6]  // b, forward
  %s = add(%p2, %q2) : f32[{rows},6]  // c, forward
  %u = mul(%s, %r) : f32[{rows},6]  // c, forward
  %y = matmul(%u, %w3) : f32[{rows},6]  // c, forward
  %loss = mse(%y, %t) : f32[]  // c, forward
} update sgd {lr=0.5}
)",
                     {"a", "b", "c"},
                     {"w1", "w2", "w3"}});
}

TEST(WholeSpineOps, loss_ignores_a_boundary_value) {
  ExpectTrainsAlike({R"(
graph @step(%x: f32[{rows},6] {batch_axis=0}, %t: f32[{rows},6] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %w1 = param "w1" : f32[6,6]
  %w2 = param "w2" : f32[6,6]
  %w3 = param "w3" : f32[6,6]
  %h1 = matmul(%x, %w1) : f32[{rows},6]  // a, forward
  %g1 = tanh(%h1) : f32[{rows},6]  // a, forward
  %ignored = sigmoid(%h1) : f32[{rows},6]  // a, forward
  %h2 = matmul(%g1, %w2) : f32[{rows},6]  // b, forward
  %nothing = mul(%ignored, %h2) : f32[{rows},6]  // b, forward
  %nothing2 = neg(%nothing) : f32[{rows},6]  // c, forward
  %y = matmul(%h2, %w3) : f32[{rows},6]  // c, forward
  %loss = mse(%y, %t) : f32[]  // c, forward
} update sgd {lr=0.5}
)",
                     {"a", "b", "c"},
                     {"w1", "w2", "w3"}});
}

// The table alone on the first stage, or the second, and read again on the last.
TEST(WholeSpineOps, embedding_at_the_cut) {
  const std::string text = R"(
graph @step(%ids: i32[{rows}] {batch_axis=0}, %label: i32[{rows}] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %table = param "table" : f32[5,8]
  %w = param "w" : f32[8,8]
  %e = gather(%table, %ids) : f32[{rows},8]  // a, forward
  %h = matmul(%e, %w) : f32[{rows},8]  // b, forward
  %g = tanh(%h) : f32[{rows},8]  // b, forward
  %y = matmul(%g, %table) {transpose_b} : f32[{rows},5]  // c, forward
  %loss = softmax_cross_entropy(%y, %label) : f32[]  // c, forward
} update adamw {lr=0.05, weight_decay=0.01, eps=0.001}
)";
  ExpectTrainsAlike({text, {"a", "b", "c"}, {"table", "w"}});
}

TEST(WholeSpineOps, constant_read_by_every_layer) {
  const std::string text = R"(
graph @step(%x: f32[{rows},3] {batch_axis=0}, %t: f32[{rows},3] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %w1 = param "w1" : f32[3,3]
  %w2 = param "w2" : f32[3,3]
  %w3 = param "w3" : f32[3,3]
  TABLE : f32[3]
  %h1 = matmul(%x, %w1) : f32[{rows},3]  // a, forward
  %g1 = mul(%h1, %table) : f32[{rows},3]  // a, forward
  %h2 = matmul(%g1, %w2) : f32[{rows},3]  // b, forward
  %g2 = mul(%h2, %table) : f32[{rows},3]  // b, forward
  %h3 = matmul(%g2, %w3) : f32[{rows},3]  // c, forward
  %y = add(%h3, %table) : f32[{rows},3]  // c, forward
  %loss = mse(%y, %t) : f32[]  // c, forward
} update sgd {lr=0.5}
)";
  const auto with = [&](const std::string& table) { return absl::StrReplaceAll(text, {{"TABLE", table}}); };
  ExpectTrainsAlike({with("%table = constant [0.5, -1.5, 2.0]"), {"a", "b", "c"}, {"w1", "w2", "w3"}});
  ExpectTrainsAlike({with("%table = param \"table\""), {"a", "b", "c"}, {"w1", "w2", "w3", "table"}});
  ExpectTrainsAlike({with("%table = param \"table\" {trainable=false}"), {"a", "b", "c"}, {"w1", "w3", "table"}});
}

TEST(WholeSpineOps, classification_head_on_last_stage) {
  ExpectTrainsAlike({R"(
graph @step(%x: f32[{rows},3,4] {batch_axis=0}, %label: i32[{rows}] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %s = param "scale" : f32[3,4]
  %g = param "gamma" : f32[4]
  %b = param "beta" : f32[4]
  %w = param "head" : f32[4,5]
  %h1 = mul(%x, %s) : f32[{rows},3,4]  // a, forward
  %h2 = layer_norm(%h1, %g, %b) {eps=0.1} : f32[{rows},3,4]  // b, forward
  %first = slice(%h2) {begin=[0,0,0], size=[{rows},1,4]} : f32[{rows},1,4]  // c, forward
  %token = reshape(%first) {shape=[{rows},4]} : f32[{rows},4]  // c, forward
  %y = matmul(%token, %w) : f32[{rows},5]  // c, forward
  %loss = softmax_cross_entropy(%y, %label) : f32[]  // c, forward
} update sgd {lr=0.1}
)",
                     {"a", "b", "c"},
                     {"scale", "gamma", "beta", "head"}});
}

TEST(WholeSpineOps, non_contiguous_output) {
  ExpectTrainsAlike({R"(
graph @step(%x: f32[{rows},6] {batch_axis=0}, %t: f32[{rows},6] {batch_axis=0}) -> (%loss {reduce="{reduce}"}) {
  %w1 = param "w1" : f32[6,6]
  %w2 = param "w2" : f32[6,6]
  %h1 = matmul(%x, %w1) : f32[{rows},6]  // a, forward
  %turned = transpose(%h1) {perm=[1,0]} : f32[6,{rows}]  // a, forward
  %h2 = tanh(%turned) : f32[6,{rows}]  // b, forward
  %back = transpose(%h2) {perm=[1,0]} : f32[{rows},6]  // b, forward
  %y = matmul(%back, %w2) : f32[{rows},6]  // c, forward
  %loss = mse(%y, %t) : f32[]  // c, forward
} update sgd {lr=0.5}
)",
                     {"a", "b", "c"},
                     {"w1", "w2"}});
}

// Micro-batches of 10 and of 2 tokens that count. A token of the first has the loss ln 2, one of the second ln(1 +
// e^3).
TEST(WholeSpineOps, token_mean_over_uneven_masks) {
  for (const int stages : {1, 2}) {
    auto session = SmallSession::Start(absl::StrCat(R"(
pipeline {micro_batches=2, schedule="1f1b", stages=)",
                                                    stages, R"(}
stage "a" = 0
stage "b" = )",
                                                    stages - 1, R"(

graph @step(%x: f32[10,2] {batch_axis=0}, %label: i32[10] {batch_axis=0}) -> (%loss {reduce="mean"}) {
  %w = param "w" : f32[2]
  %v = param "v" : f32[2]
  %h = mul(%x, %w) : f32[10,2]  // a, forward
  %y = mul(%h, %v) : f32[10,2]  // b, forward
  %tokens = labels_per_micro_batch(%label) {ignore_index=-100} : f32[]  // b, forward
  %loss = softmax_cross_entropy(%y, %label, %tokens) : f32[]  // b, forward
} update sgd {lr=1.0}
)"));
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE(session->Write("w", {1, 1}).ok());
    ASSERT_TRUE(session->Write("v", {1, 1}).ok());
    std::vector<double> x(40, 0);
    std::vector<double> labels(20, -100);
    for (size_t i = 0; i < 10; ++i) labels[i] = 0;
    for (const size_t i : {12, 17}) {
      labels[i] = 0;
      x[2 * i + 1] = 3;
    }
    const auto loss = session->Step({x, labels});
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_NEAR(*loss, (10 * std::log(2.0) + 2 * std::log(1 + std::exp(3.0))) / 12, 1e-6);
    // d loss / d w of the second class: the softmax of 3, times x, of two tokens of twelve.
    EXPECT_NEAR(session->Read("w")[1], 1 - 2 * 3 / (1 + std::exp(-3.0)) / 12, 1e-6);
    EXPECT_NEAR(session->Read("v")[1], 1 - 2 * 3 / (1 + std::exp(-3.0)) / 12, 1e-6);
  }
}

TEST(WholeSpineOps, sum_loss_divided_by_tokens) {
  const std::string text = R"(
graph @step(%x: f32[{rows},6] {batch_axis=0}, %label: i32[{rows}] {batch_axis=0}) -> (%loss {reduce="sum"}) {
  %w1 = param "w1" : f32[6,6]
  %w2 = param "w2" : f32[6,5]
  %tokens = constant 100.0 : f32[]
  %h1 = matmul(%x, %w1) : f32[{rows},6]  // a, forward
  %y = matmul(%h1, %w2) : f32[{rows},5]  // b, forward
  %sum = softmax_cross_entropy(%y, %label) {ignore_index=1, reduction="sum"} : f32[]  // b, forward
  %loss = div(%sum, %tokens) : f32[]  // b, forward
} update sgd {lr=5.0}
)";
  ExpectTrainsAlike({text, {"a", "b"}, {"w1", "w2"}});
}

// The same with the count as a number that the caller gives with each step.
TEST(WholeSpineOps, sum_loss_divided_by_a_count_that_is_given) {
  for (const int stages : {1, 2}) {
    auto session = SmallSession::Start(absl::StrCat(R"(
pipeline {micro_batches=2, schedule="gpipe", stages=)",
                                                    stages, R"(}
stage "a" = 0
stage "b" = )",
                                                    stages - 1, R"(

graph @step(%x: f32[1,1] {batch_axis=0}, %t: f32[1,1] {batch_axis=0}, %tokens: f32[]) -> (%loss {reduce="sum"}) {
  %w = param "w" : f32[1,1]
  %v = param "v" : f32[1,1]
  %h = matmul(%x, %w) : f32[1,1]  // a, forward
  %y = matmul(%h, %v) : f32[1,1]  // b, forward
  %sum = mse(%y, %t) {reduction="sum"} : f32[]  // b, forward
  %loss = div(%sum, %tokens) : f32[]  // b, forward
} update sgd {lr=1.0}
)"));
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE(session->Write("w", {1}).ok());
    ASSERT_TRUE(session->Write("v", {1}).ok());
    const auto loss = session->Step({{1, 3}, {0, 0}, {64}});
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_EQ(*loss, 10.0f / 64);
    EXPECT_EQ(session->Read("w")[0], 1 - 20.0f / 64);
    EXPECT_EQ(session->Read("v")[0], 1 - 20.0f / 64);
  }
}

}  // namespace
}  // namespace pipeloom
