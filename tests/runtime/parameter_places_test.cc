// A step that would leave a copy of a parameter behind, on a rank where another program uses it, is refused.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/parse.h"
#include "plugin/runtime/compile.h"
#include "plugin/runtime/session.h"

namespace pipeloom {
namespace {

using ::testing::HasSubstr;

CompiledProgram Program(const std::string& text) {
  absl::StatusOr<Module> module = Parse(text);
  PIPELOOM_CHECK(module.ok(), module.status().message());
  absl::StatusOr<CompiledProgram> program = Compile(*std::move(module), {});
  PIPELOOM_CHECK(program.ok(), program.status().message());
  return *std::move(program);
}

// Cell `first` is on stage 0 and `last` on stage 1.
CompiledProgram Training() {
  return Program(R"(
pipeline {micro_batches=2, schedule="1f1b", stages=2}
stage "first" = 0
stage "last" = 1
graph @step(%x: f32[1,2] {batch_axis=0}, %t: f32[1,2] {batch_axis=0}) -> (%loss {reduce="sum"}) {
  %w1 = param "first.weight" : f32[2,2]
  %w2 = param "last.weight" : f32[2,2]
  %h = matmul(%x, %w1) : f32[1,2]  // first, forward
  %y = matmul(%h, %w2) : f32[1,2]  // last, forward
  %loss = mse(%y, %t) : f32[]  // loss, forward
} update sgd {lr=0.1}
)");
}

CompiledProgram Prediction(int first, int last) {
  return Program(absl::StrCat(R"(
pipeline {micro_batches=2, schedule="forward", stages=2}
stage "first" = )",
                              first, R"(
stage "last" = )",
                              last, R"(
graph @step(%x: f32[1,2] {batch_axis=0}) -> (%y {reduce="concat"}) {
  %w1 = param "first.weight" : f32[2,2]
  %w2 = param "last.weight" : f32[2,2]
  %h = matmul(%x, %w1) : f32[1,2]  // first, forward
  %y = matmul(%h, %w2) : f32[1,2]  // last, forward
}
)"));
}

// Tensors for a step.
absl::Status Step(Session& session, int number, const CompiledProgram& program) {
  std::vector<Tensor> tensors;
  for (const TensorType& type : program.inputs) tensors.emplace_back(type);
  for (const TensorType& type : session.OutputTypes(number)) tensors.emplace_back(type);
  std::vector<TensorView> views;
  for (Tensor& tensor : tensors) views.push_back(tensor.view());
  const auto all = absl::MakeConstSpan(views);
  return session.Run(number, all.first(program.inputs.size()), all.subspan(program.inputs.size()));
}

TEST(ParameterPlaces, TrainingAndPredictionOnTheSameRanksTakeTurns) {
  std::unique_ptr<Session> session = *Session::Create(2, {});
  const CompiledProgram training = Training();
  const CompiledProgram prediction = Prediction(0, 1);
  const int train = *session->Load(training);
  const int predict = *session->Load(prediction);
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(Step(*session, train, training), absl::OkStatus());
    EXPECT_EQ(Step(*session, predict, prediction), absl::OkStatus());
  }
}

// A prediction elsewhere has the values of the moment; training on would leave them behind.
TEST(ParameterPlaces, TrainingOnAfterAPredictionElsewhereIsRefused) {
  for (const bool training_first : {true, false}) {
    std::unique_ptr<Session> session = *Session::Create(2, {});
    const CompiledProgram training = Training();
    const CompiledProgram prediction = Prediction(1, 1);
    const int first = *session->Load(training_first ? training : prediction);
    const int second = *session->Load(training_first ? prediction : training);
    EXPECT_EQ(Step(*session, training_first ? second : first, prediction), absl::OkStatus());
    const absl::Status refused = Step(*session, training_first ? first : second, training);
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("updates parameter first.weight, but not on rank 1"));
  }
}

}  // namespace
}  // namespace pipeloom
