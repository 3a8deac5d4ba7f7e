// A step allocates nothing of ours from the third one on.

#include <vector>

#include "gtest/gtest.h"
#include "passes/ir/parse.h"
#include "plugin/runtime/session.h"
#include "tests/testlib/allocation_count.h"

namespace pipeloom {
namespace {

constexpr char kNetwork[] = R"(
pipeline {micro_batches=3, schedule="1f1b", stages=2}
stage "a" = 0
stage "b" = 1

graph @step(%x: f32[64,8] {batch_axis=0}, %label: i32[64] {batch_axis=0}) -> (%loss {reduce="mean"}) {
  %w1 = param "a.weight" : f32[8,12]
  %b1 = param "a.bias" : f32[12]
  %w2 = param "b.weight" : f32[8,12]
  %h1 = matmul(%x, %w1) : f32[64,12]  // a, forward
  %h2 = add(%h1, %b1) : f32[64,12]  // a, forward
  %h3 = gelu(%h2) : f32[64,12]  // a, forward
  %y = matmul(%h3, %w2) {transpose_b} : f32[64,8]  // b, forward
  %s = add(%y, %x) : f32[64,8]  // b, forward
  %t = matmul(%s, %w1) : f32[64,12]  // b, forward
  %loss = softmax_cross_entropy(%t, %label) : f32[]  // forward
} update adam {lr=0.01}
)";

TEST(SteadyStateTest, AllocatesNothingFromTheThirdStepOn) {
  absl::StatusOr<Module> module = Parse(kNetwork);
  ASSERT_TRUE(module.ok()) << module.status();
  const absl::StatusOr<CompiledProgram> program = Compile(*std::move(module), {});
  ASSERT_TRUE(program.ok()) << program.status();
  auto session = Session::Create(2, {});
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::StatusOr<int> number = (*session)->Load(*program);
  ASSERT_TRUE(number.ok()) << number.status();
  Tensor x(program->inputs[0]);
  Tensor label(program->inputs[1]);
  for (int i = 0; i < 192 * 8; ++i) x.data<float>()[i] = 0.01f * static_cast<float>(i % 31);
  float loss = 0;
  const std::vector<TensorView> inputs = {x.view(), label.view()};
  const std::vector<TensorView> outputs = {{&loss, {DType::kFloat32, {}}}};
  for (int step = 0; step < 2; ++step) ASSERT_TRUE((*session)->Run(*number, inputs, outputs).ok());
  const float second = loss;
  const int64_t before = AllocationCount();
  ASSERT_GT(before, 0) << "allocations are not counted";
  for (int step = 0; step < 10; ++step) {
    if (!(*session)->Run(*number, inputs, outputs).ok()) FAIL();
  }
  EXPECT_EQ(AllocationCount() - before, 0);
  EXPECT_NE(loss, second);
}

}  // namespace
}  // namespace pipeloom
