// A network of repeated cells trains to the same bits whether they are blocks or not.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "passes/pass_pipeline.h"
#include "passes/pipeline_parallel.h"
#include "tests/runtime/train.h"

namespace pipeloom {
namespace {

constexpr int kLayers = 6;
constexpr int kClasses = 5;

// Layers that read their input twice, share one weight, hide another under a view and end in a view; the result of the
// second one is read by the last and by the head too.
Network Stack() {
  std::string parameters;
  std::string nodes;
  std::string x = "x";
  Network network;
  const auto line = [&](const std::string& text, const std::string& cell) {
    absl::StrAppend(&nodes, "  ", text, "  // ", cell, ", forward\n");
  };
  for (int i = 0; i < kLayers; ++i) {
    const std::string cell = absl::StrCat("net.", i);
    absl::StrAppend(&parameters, "  %w", i, " = param \"", cell, ".dense.weight\" : f32[8,8]\n  %g", i, " = param \"",
                    cell, ".gamma\" : f32[2,4]\n  %b", i, " = param \"", cell, ".beta\" : f32[8]\n");
    line(absl::StrCat("%a", i, " = matmul(%", x, ", %w", i, ") {transpose_b} : f32[{rows},8]"), cell + ".dense");
    line(absl::StrCat("%c", i, " = matmul(%a", i, ", %shared) : f32[{rows},8]"), cell + ".dense");
    line(absl::StrCat("%d", i, " = tanh(%c", i, ") : f32[{rows},8]"), cell + ".dense");
    line(absl::StrCat("%row", i, " = reshape(%g", i, ") {shape=[8]} : f32[8]"), cell);
    line(absl::StrCat("%n", i, " = layer_norm(%d", i, ", %row", i, ", %b", i, ") {eps=0.01} : f32[{rows},8]"), cell);
    line(absl::StrCat("%s", i, " = add(%n", i, ", %", x, ") : f32[{rows},8]"), cell);
    line(absl::StrCat("%h", i, " = reshape(%s", i, ") {shape=[{rows},8]} : f32[{rows},8]"), cell);
    x = absl::StrCat("h", i);
    network.cells.push_back(cell);
    network.parameters.push_back(cell + ".dense.weight");
    network.parameters.push_back(cell + ".gamma");
  }
  line("%skip = add(%h5, %h1) : f32[{rows},8]", "head");
  line("%y = matmul(%skip, %last) : f32[{rows},5]", "head");
  network.cells.push_back("head");
  network.parameters.push_back("shared");
  network.text = absl::StrCat(
      "graph @step(%x: f32[{rows},8] {batch_axis=0}, %label: i32[{rows}] {batch_axis=0}) -> ",
      "(%loss {reduce=\"{reduce}\"}) {\n  %shared = param \"shared\" : f32[8,8]\n  %last = param \"last\" : f32[8,5]\n",
      parameters, nodes, "  %loss = softmax_cross_entropy(%y, %label) : f32[]  // forward\n} update adam {lr=0.01}\n");
  return network;
}

// How many forward calls there are in front of assign_stages.
int ForwardCalls(Module module) {
  int calls = 0;
  const absl::Status run =
      PassPipeline(PipelineParallelPasses()).Run(module, "", [&](const Pass& pass, const Module& m) {
        if (pass.name() != "inline_blocks") return;
        for (const auto& node : m.graphs[0]->nodes()) calls += node->op == kCall && node->info.phase == Phase::kForward;
      });
  EXPECT_TRUE(run.ok()) << run;
  return calls;
}

class BlocksTest : public testing::TestWithParam<int> {};

TEST_P(BlocksTest, SameBitsAsWithoutBlocks) {
  const int micro_batches = GetParam();
  const Network network = Stack();
  Layout flat{1, "1f1b", micro_batches};
  flat.outlined = false;
  ASSERT_EQ(ForwardCalls(BuildModule(network, micro_batches * 2, flat)), 0);
  const auto expected = TrainPipelined(network, micro_batches * 2, 3, kClasses, flat);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (int stages = 1; stages <= 3; ++stages) {
    for (const char* schedule : {"gpipe", "1f1b", "interleaved"}) {
      const Layout layout{stages, schedule, micro_batches};
      ASSERT_EQ(ForwardCalls(BuildModule(network, micro_batches * 2, layout)), kLayers);
      const auto trained = TrainPipelined(network, micro_batches * 2, 3, kClasses, layout);
      ASSERT_TRUE(trained.ok()) << trained.status();
      EXPECT_TRUE(*trained == *expected) << stages << " stages, " << schedule;
    }
  }
}

TEST_P(BlocksTest, SameBitsWhereACallIsCutInTwo) {
  const int micro_batches = GetParam();
  Network network = Stack();
  Layout flat{1, "1f1b", micro_batches};
  flat.outlined = false;
  const auto expected = TrainPipelined(network, micro_batches * 2, 3, kClasses, flat);
  ASSERT_TRUE(expected.ok()) << expected.status();
  network.cells.push_back("net.3.dense");
  const Layout layout{2, "1f1b", micro_batches, {0, 0, 0, 1, 1, 1, 1, 0}};
  ASSERT_EQ(ForwardCalls(BuildModule(network, micro_batches * 2, layout)), kLayers - 1);
  const auto trained = TrainPipelined(network, micro_batches * 2, 3, kClasses, layout);
  ASSERT_TRUE(trained.ok()) << trained.status();
  EXPECT_TRUE(*trained == *expected);
}

INSTANTIATE_TEST_SUITE_P(MicroBatches, BlocksTest, testing::Values(1, 4, 5));

// The network of one micro-batch, and the same written out for two, as calls on slices.
Network PlainNetwork() {
  return {R"(
graph @step(%x: f32[2,6] {batch_axis=0}, %t: f32[2,3] {batch_axis=0}) -> (%l {reduce="sum"}, %y {index=1, reduce="concat"}) {
  %w1 = param "net.a.weight" : f32[6,6]
  %w2 = param "net.b.weight" : f32[6,3]
  %h = matmul(%x, %w1) : f32[2,6]  // net.a, forward
  %r = tanh(%h) : f32[2,6]  // net.a, forward
  %y = matmul(%r, %w2) : f32[2,3]  // net.b, forward
  %l = mse(%y, %t) : f32[]  // net.b, forward
} update sgd {lr=0.1, momentum=0.9}
)",
          {"net.a", "net.b"},
          {"net.a.weight", "net.b.weight", "accum.net.a.weight"}};
}

Network WrittenOutNetwork() {
  Network network = PlainNetwork();
  network.text = R"(
block @net(%x: f32[2,6], %t: f32[2,3]) -> (%y, %l) {
  %w1 = param "a.weight" : f32[6,6]
  %w2 = param "b.weight" : f32[6,3]
  %h = matmul(%x, %w1) : f32[2,6]  // a, forward
  %r = tanh(%h) : f32[2,6]  // a, forward
  %y = matmul(%r, %w2) : f32[2,3]  // b, forward
  %l = mse(%y, %t) : f32[]  // b, forward
}
graph @step(%x: f32[4,6] {batch_axis=0}, %t: f32[4,3] {batch_axis=0}) -> (%l {reduce="sum"}, %y {index=1, reduce="concat"}) {
  %w1 = param "net.a.weight" : f32[6,6]
  %w2 = param "net.b.weight" : f32[6,3]
  %x0 = slice(%x) {begin=[0,0], size=[2,6]} : f32[2,6]  // forward
  %t0 = slice(%t) {begin=[0,0], size=[2,3]} : f32[2,3]  // forward
  %x1 = slice(%x) {begin=[2,0], size=[2,6]} : f32[2,6]  // forward
  %t1 = slice(%t) {begin=[2,0], size=[2,3]} : f32[2,3]  // forward
  %y0, %l0 = call(%x0, %t0, %w1, %w2) {block="net"} : f32[2,3], f32[]  // net, forward
  %y1, %l1 = call(%x1, %t1, %w1, %w2) {block="net"} : f32[2,3], f32[]  // net, forward
  %y = concat(%y0, %y1) {axis=0} : f32[4,3]  // forward
  %l = add(%l0, %l1) : f32[]  // forward
} update sgd {lr=0.1, momentum=0.9}
)";
  return network;
}

TEST(RollMicroBatchesTest, SameBitsAsMicroBatchesThatAreAskedFor) {
  const auto expected = TrainPipelined(PlainNetwork(), 4, 3, kClasses, {1, "1f1b", 2});
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (int stages = 1; stages <= 2; ++stages) {
    for (const char* schedule : {"gpipe", "1f1b"}) {
      const auto trained = TrainPipelined(WrittenOutNetwork(), 4, 3, kClasses, {stages, schedule, 1});
      ASSERT_TRUE(trained.ok()) << trained.status();
      EXPECT_TRUE(*trained == *expected) << stages << " stages, " << schedule;
    }
  }
}

// Which work is done depends on the blocks, not on how often they are called.
TEST(BlockSizeTest, BodiesDoNotGrowWithTheLayers) {
  const Network network = Stack();
  Module module = BuildModule(network, 8, {2, "1f1b", 4});
  ASSERT_TRUE(PassPipeline(PipelineParallelPasses()).Run(module, "").ok());
  size_t in_bodies = 0;
  size_t outside = 0;
  for (const auto& block : module.blocks) in_bodies += block->nodes().size();
  for (const auto& graph : module.graphs) outside += graph->nodes().size();
  EXPECT_LE(module.blocks.size(), 9u);  // forward, and B and W of at most four ways of being called
  EXPECT_GE(in_bodies, 7u);
  // Three calls a layer, and views, sums, accumulators and updates of its parameters.
  EXPECT_LE(outside, 30u * kLayers);
}

}  // namespace
}  // namespace pipeloom
