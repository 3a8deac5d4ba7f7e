// Parameters in memory of the host: what tests/c_api/bound_memory_test.c leaves out.

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/parse.h"
#include "plugin/runtime/session.h"
#include "tests/testlib/allocation_count.h"
#include "tests/testlib/ranks.h"

namespace pipeloom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const TensorType kMatrix{DType::kFloat32, {2, 2}};

// y = x w, with w on this stage, of two.
absl::StatusOr<CompiledProgram> CompileProduct(int stage) {
  ASSIGN_OR_RETURN(Module module, Parse(R"(
pipeline {micro_batches=2, schedule="forward", stages=2}

graph @step(%x: f32[1,2] {batch_axis=0}) -> (%y {reduce="concat"}) {
  %w = param "w" : f32[2,2]
  %h = copy(%x) : f32[1,2]  // before, forward
  %m = matmul(%h, %w) : f32[1,2]  // product, forward
  %y = copy(%m) : f32[1,2]  // after, forward
}
)"));
  module.config.stage_of_cell = {{"before", StageId(0)}, {"product", StageId(stage)}, {"after", StageId(1)}};
  return Compile(std::move(module), {});
}

absl::Status RunOnIdentity(Session& session, int program, Tensor& y) {
  float x[] = {1, 0, 0, 1};
  return session.Run(program, {{x, kMatrix}}, {y.view()});
}

std::vector<float> ValuesOf(const Tensor& tensor) {
  return std::vector<float>(tensor.data<float>(), tensor.data<float>() + tensor.type().num_elements());
}

// Rank 1 comes to use w by the second program. It gets the value of rank 0, unless its host has bound it.
absl::Status LoadBoth(Session& session, float* bound_on_rank_1, std::vector<float>* result) {
  ASSIGN_OR_RETURN(const CompiledProgram on_first, CompileProduct(0));
  ASSIGN_OR_RETURN(const CompiledProgram on_second, CompileProduct(1));
  RETURN_IF_ERROR(session.Load(on_first).status());
  float values[] = {1, 2, 3, 4};
  RETURN_IF_ERROR(session.WriteParameter("w", {values, kMatrix}));
  if (bound_on_rank_1 != nullptr) {
    RETURN_IF_ERROR(session.BindParameter(RankId(1), "w", {bound_on_rank_1, kMatrix}));
  }
  ASSIGN_OR_RETURN(const int number, session.Load(on_second));
  Tensor y(session.OutputTypes(number)[0]);
  RETURN_IF_ERROR(RunOnIdentity(session, number, y));
  *result = ValuesOf(y);
  return absl::OkStatus();
}

TEST(BoundParameters, ARankThatIsNewToAParameterKeepsWhatItsHostHasBound) {
  for (const bool bind : {false, true}) {
    const std::vector<float> expected = bind ? std::vector<float>{5, 6, 7, 8} : std::vector<float>{1, 2, 3, 4};
    float memory[] = {5, 6, 7, 8};
    auto threads = Session::Create(2, {});
    ASSERT_TRUE(threads.ok());
    std::vector<float> result;
    const absl::Status status = LoadBoth(**threads, bind ? memory : nullptr, &result);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(result, expected);
    EXPECT_THAT(memory, ElementsAre(5, 6, 7, 8));
    for (const absl::Status& of_rank : RunRanks(2, [&](std::unique_ptr<Transport> transport) {
           const bool is_second = transport->rank() == RankId(1);
           ASSIGN_OR_RETURN(const auto session, Session::CreateForRank(std::move(transport), {}));
           std::vector<float> mine;
           RETURN_IF_ERROR(LoadBoth(*session, bind && is_second ? memory : nullptr, &mine));
           EXPECT_EQ(mine, is_second ? expected : std::vector<float>());
           return absl::OkStatus();
         })) {
      EXPECT_TRUE(of_rank.ok()) << of_rank;
    }
    EXPECT_THAT(memory, ElementsAre(5, 6, 7, 8));
  }
}

TEST(BoundParameters, ARankBindsItsOwnOnly) {
  RunRanks(2, [](std::unique_ptr<Transport> transport) {
    const RankId other(1 - transport->rank().value());
    ASSIGN_OR_RETURN(const auto session, Session::CreateForRank(std::move(transport), {}));
    float memory[4];
    const absl::Status refused = session->BindParameter(other, "w", {memory, kMatrix});
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("each binds its own"));
    return absl::OkStatus();
  });
}

TEST(BoundParameters, AProgramThatHasAnotherTypeIsRefused) {
  auto session = Session::Create(2, {});
  ASSERT_TRUE(session.ok());
  float memory[6];
  ASSERT_TRUE((*session)->BindParameter(RankId(1), "w", {memory, {DType::kFloat32, {2, 3}}}).ok());
  const absl::StatusOr<CompiledProgram> program = CompileProduct(1);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ((*session)->Load(*program).status().message(),
            "parameter w is f32[2,3] where it is bound to memory of the host and f32[2,2] in a program");
}

TEST(BoundParameters, AStepAfterABindingAllocatesNothing) {
  auto session = Session::Create(2, {});
  ASSERT_TRUE(session.ok());
  const absl::StatusOr<CompiledProgram> program = CompileProduct(1);
  ASSERT_TRUE(program.ok());
  const absl::StatusOr<int> number = (*session)->Load(*program);
  ASSERT_TRUE(number.ok());
  Tensor y(program->outputs[0]);
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(RunOnIdentity(**session, *number, y).ok());
  float memory[] = {5, 6, 7, 8};
  ASSERT_TRUE((*session)->BindParameter(RankId(1), "w", {memory, kMatrix}).ok());
  const int64_t before = AllocationCount();
  ASSERT_GT(before, 0) << "allocations are not counted";
  if (!RunOnIdentity(**session, *number, y).ok()) FAIL();
  EXPECT_EQ(AllocationCount() - before, 0);
  EXPECT_THAT(ValuesOf(y), ElementsAre(5, 6, 7, 8));
}

}  // namespace
}  // namespace pipeloom
