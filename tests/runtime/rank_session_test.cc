// Ranks that are programs of their own: the same numbers as ranks that are threads of one session, and every rank
// refuses what one of them does otherwise. Transports are those of threads here, so that each fault can be made at
// will.

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/parse.h"
#include "plugin/runtime/session.h"
#include "tests/testlib/allocation_count.h"
#include "tests/testlib/ranks.h"

namespace pipeloom {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The last product shares the first one's weight; on 1 to 3 stages.
std::string Training(int stages, double lr = 0.1, int rows = 2) {
  return absl::StrReplaceAll(R"(
pipeline {micro_batches=3, schedule="1f1b", stages={P}}
stage "a" = 0
stage "b" = {B}
stage "c" = {C}

graph @step(%x: f32[{R},4] {batch_axis=0}, %label: i32[{R}] {batch_axis=0}) -> (%loss {reduce="mean"}) {
  %w1 = param "w1" : f32[4,4]
  %w2 = param "w2" : f32[4,4]
  %h = matmul(%x, %w1) : f32[{R},4]  // a, forward
  %t = tanh(%h) : f32[{R},4]  // b, forward
  %s = matmul(%t, %w2) : f32[{R},4]  // b, forward
  %y = matmul(%s, %w1) : f32[{R},4]  // c, forward
  %loss = softmax_cross_entropy(%y, %label) : f32[]  // c, forward
} update sgd {lr={LR}, momentum=0.9}
)",
                             {{"{P}", absl::StrCat(stages)},
                              {"{B}", absl::StrCat(stages == 3 ? 1 : 0)},
                              {"{C}", absl::StrCat(stages - 1)},
                              {"{R}", absl::StrCat(rows)},
                              {"{LR}", absl::StrCat(lr)}});
}

// Uses w2 on the last stage, where training does not have it.
constexpr char kPredicting[] = R"(
pipeline {micro_batches=3, schedule="forward", stages=2}
stage "a" = 0
stage "b" = 1

graph @step(%x: f32[2,4] {batch_axis=0}) -> (%y {reduce="concat"}) {
  %w1 = param "w1" : f32[4,4]
  %w2 = param "w2" : f32[4,4]
  %h = matmul(%x, %w1) : f32[2,4]  // a, forward
  %y = matmul(%h, %w2) : f32[2,4]  // b, forward
}
)";

absl::StatusOr<CompiledProgram> CompileText(const std::string& text) {
  ASSIGN_OR_RETURN(Module module, Parse(text));
  return Compile(std::move(module), {});
}

// Inputs and outputs of a program's steps.
struct Io {
  Io(const CompiledProgram& program, const std::vector<TensorType>& output_types) {
    for (const TensorType& type : program.inputs) inputs.emplace_back(type);
    for (const TensorType& type : output_types) outputs.emplace_back(type);
    for (int64_t i = 0; i < program.inputs[0].num_elements(); ++i) {
      inputs[0].data<float>()[i] = 0.25f * static_cast<float>(i % 7) - 0.6f;
    }
    for (size_t i = 1; i < inputs.size(); ++i) {
      for (int64_t j = 0; j < program.inputs[i].num_elements(); ++j) {
        inputs[i].data<int32_t>()[j] = static_cast<int32_t>(j % 4);
      }
    }
    for (Tensor& input : inputs) input_views.push_back(input.view());
    for (Tensor& output : outputs) output_views.push_back(output.view());
  }
  float scalar() const { return outputs[0].data<float>()[0]; }

  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::vector<TensorView> input_views;
  std::vector<TensorView> output_views;
};

std::vector<float> ValuesOf(const Tensor& tensor) {
  return std::vector<float>(tensor.data<float>(), tensor.data<float>() + tensor.type().num_elements());
}

absl::Status WriteInitialValues(Session& session) {
  Tensor value(TensorType{DType::kFloat32, {4, 4}});
  for (const char* name : {"w1", "w2"}) {
    for (int i = 0; i < 16; ++i) value.data<float>()[i] = 0.1f * static_cast<float>((i * name[1]) % 11) - 0.4f;
    RETURN_IF_ERROR(session.WriteParameter(name, value.view()));
  }
  return absl::OkStatus();
}

struct Trained {
  std::vector<float> losses;
  std::vector<std::vector<float>> parameters;  // w1, w2, accum.w2
  size_t copies_of_w1 = 0;
};

absl::StatusOr<Trained> Train(Session& session, const CompiledProgram& program, int steps) {
  ASSIGN_OR_RETURN(const int number, session.Load(program));
  RETURN_IF_ERROR(WriteInitialValues(session));
  Io io(program, session.OutputTypes(number));
  Trained trained;
  for (int step = 0; step < steps; ++step) {
    RETURN_IF_ERROR(session.Run(number, io.input_views, io.output_views));
    trained.losses.push_back(io.scalar());
  }
  for (const char* name : {"w1", "w2", "accum.w2"}) {
    ASSIGN_OR_RETURN(const Tensor value, session.ReadParameter(name));
    trained.parameters.push_back(ValuesOf(value));
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> copies, session.ReadCopies("w1"));
  trained.copies_of_w1 = copies.size();
  for (const Tensor& copy : copies) EXPECT_EQ(ValuesOf(copy), trained.parameters[0]);
  return trained;
}

TEST(RankSession, EveryRankHasTheLossesAndWeightsOfRanksThatAreThreads) {
  for (const int stages : {1, 2, 3}) {
    const absl::StatusOr<CompiledProgram> program = CompileText(Training(stages));
    ASSERT_TRUE(program.ok()) << program.status();
    auto threads = Session::Create(stages, {});
    ASSERT_TRUE(threads.ok());
    const absl::StatusOr<Trained> expected = Train(**threads, *program, 5);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_LT(expected->losses.back(), expected->losses.front());
    for (const absl::Status& status : RunRanks(stages, [&](std::unique_ptr<Transport> transport) {
           const RankId rank = transport->rank();
           ASSIGN_OR_RETURN(const auto session, Session::CreateForRank(std::move(transport), {}));
           EXPECT_EQ(session->rank(), rank);
           EXPECT_EQ(session->ranks(), stages);
           ASSIGN_OR_RETURN(const Trained mine, Train(*session, *program, 5));
           EXPECT_EQ(mine.losses, expected->losses) << "rank " << rank << " of " << stages;
           EXPECT_EQ(mine.parameters, expected->parameters) << "rank " << rank << " of " << stages;
           EXPECT_EQ(mine.copies_of_w1, expected->copies_of_w1);
           return absl::OkStatus();
         })) {
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

// Both ranks train a little, then predict with w2 on another rank than it was trained on.
absl::StatusOr<std::vector<Tensor>> TrainThenPredict(Session& session) {
  ASSIGN_OR_RETURN(const CompiledProgram training, CompileText(Training(2)));
  ASSIGN_OR_RETURN(const CompiledProgram predicting, CompileText(kPredicting));
  RETURN_IF_ERROR(Train(session, training, 2).status());
  ASSIGN_OR_RETURN(const int number, session.Load(predicting));
  Io io(predicting, session.OutputTypes(number));
  RETURN_IF_ERROR(session.Run(number, io.input_views, io.output_views));
  return std::move(io.outputs);
}

TEST(RankSession, OutputsAreOfSizeZeroWhereARankDoesNotHaveThemUnlessBroadcast) {
  auto threads = Session::Create(2, {});
  ASSERT_TRUE(threads.ok());
  const absl::StatusOr<std::vector<Tensor>> expected = TrainThenPredict(**threads);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_NE(ValuesOf((*expected)[0]), std::vector<float>(24, 0.0f));
  for (const bool broadcast : {false, true}) {
    SessionOptions options;
    options.output_broadcast = broadcast;
    for (const absl::Status& status : RunRanks(2, [&](std::unique_ptr<Transport> transport) {
           const bool has_it = broadcast || transport->rank() == RankId(1);
           ASSIGN_OR_RETURN(const auto session, Session::CreateForRank(std::move(transport), options));
           ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, TrainThenPredict(*session));
           EXPECT_EQ(outputs[0].type().shape, (has_it ? Shape{6, 4} : Shape{0, 4}));
           EXPECT_EQ(ValuesOf(outputs[0]), has_it ? ValuesOf((*expected)[0]) : std::vector<float>());
           return absl::OkStatus();
         })) {
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

TEST(RankSession, WhatRankZeroReadsComesToAll) {
  for (const absl::Status& status : RunRanks(3, [&](std::unique_ptr<Transport> transport) {
         const bool is_zero = transport->rank() == RankId(0);
         ASSIGN_OR_RETURN(const auto session, Session::CreateForRank(std::move(transport), {}));
         const std::string text(200000, 'x');  // more than one piece
         const auto read = session->OnRankZero("reading", [&]() -> absl::StatusOr<std::string> {
           EXPECT_TRUE(is_zero);
           return text;
         });
         EXPECT_TRUE(read.ok() && *read == text);
         const auto missing = session->OnRankZero(
             "reading", []() -> absl::StatusOr<std::string> { return absl::NotFoundError("no such file"); });
         EXPECT_EQ(missing.status(), absl::NotFoundError("no such file"));
         return absl::OkStatus();
       })) {
    EXPECT_TRUE(status.ok()) << status;
  }
}

void ExpectOnAll(const std::vector<absl::Status>& statuses, const testing::Matcher<std::string>& message) {
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    EXPECT_FALSE(statuses[rank].ok()) << "rank " << rank;
    EXPECT_THAT(std::string(statuses[rank].message()), message) << "rank " << rank;
  }
}

TEST(RankSession, DifferentFlagsAreNamedOnEveryRank) {
  ExpectOnAll(RunRanks(3,
                       [&](std::unique_ptr<Transport> transport) {
                         SessionOptions options;
                         options.configuration = {{"stages", "3"},
                                                  {"micro_batches", transport->rank() == RankId(1) ? "8" : "4"},
                                                  {"seed", "1"}};
                         return Session::CreateForRank(std::move(transport), options).status();
                       }),
              HasSubstr("rank 1 has `micro_batches=8`, rank 0 has `micro_batches=4`; give all ranks the same flags"));
}

TEST(RankSession, DifferentProgramsAreNamedOnEveryRank) {
  ExpectOnAll(RunRanks(2,
                       [&](std::unique_ptr<Transport> transport) -> absl::Status {
                         const double lr = transport->rank() == RankId(1) ? 0.25 : 0.5;
                         ASSIGN_OR_RETURN(const auto session, Session::CreateForRank(std::move(transport), {}));
                         ASSIGN_OR_RETURN(const CompiledProgram program, CompileText(Training(2, lr)));
                         return session->Load(program).status();
                       }),
              AllOf(HasSubstr("rank 1 has `"), HasSubstr("lr=0.25"), HasSubstr("rank 0 has `"), HasSubstr("lr=0.5"),
                    HasSubstr("compiled different programs")));
}

TEST(RankSession, AProgramForOtherRanksIsRefusedByAll) {
  ExpectOnAll(RunRanks(2,
                       [&](std::unique_ptr<Transport> transport) -> absl::Status {
                         ASSIGN_OR_RETURN(const auto session, Session::CreateForRank(std::move(transport), {}));
                         ASSIGN_OR_RETURN(const CompiledProgram program, CompileText(Training(3)));
                         return session->Load(program).status();
                       }),
              HasSubstr("the program is for 3 ranks; the session has 2"));
}

// Runs two steps on both ranks, then what `after` does.
std::vector<absl::Status> AfterTwoSteps(
    const std::function<absl::Status(Session& session, int number, Io& io)>& after) {
  const absl::StatusOr<CompiledProgram> program = CompileText(Training(2));
  EXPECT_TRUE(program.ok()) << program.status();
  return RunRanks(2, [&](std::unique_ptr<Transport> transport) -> absl::Status {
    ASSIGN_OR_RETURN(const auto session, Session::CreateForRank(std::move(transport), {}));
    ASSIGN_OR_RETURN(const int number, session->Load(*program));
    RETURN_IF_ERROR(WriteInitialValues(*session));
    Io io(*program, session->OutputTypes(number));
    for (int step = 0; step < 2; ++step) RETURN_IF_ERROR(session->Run(number, io.input_views, io.output_views));
    return after(*session, number, io);
  });
}

TEST(RankSession, ARankThatEndsEarlierEndsTheOthersStep) {
  const std::vector<absl::Status> statuses = AfterTwoSteps([](Session& session, int number, Io& io) {
    return session.rank() == RankId(1) ? absl::OkStatus() : session.Run(number, io.input_views, io.output_views);
  });
  EXPECT_TRUE(statuses[1].ok()) << statuses[1];
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(statuses[0].message()),
              AllOf(HasSubstr("rank 1 has ended"), HasSubstr("rank 0 begins step 2 of program 0 (f32[6,4], i32[6])")));
}

TEST(RankSession, CallsInAnotherOrderAreNamedOnEveryRank) {
  ExpectOnAll(AfterTwoSteps([](Session& session, int number, Io& io) {
                if (session.rank() == RankId(1)) return session.ReadParameter("w2").status();
                return session.Run(number, io.input_views, io.output_views);
              }),
              HasSubstr("rank 0 begins step 2 of program 0 (f32[6,4], i32[6]); rank 1 reads parameter w2"));
}

TEST(RankSession, AnotherBatchOnOneRankIsNamedOnEveryRank) {
  const absl::StatusOr<CompiledProgram> other = CompileText(Training(2, 0.1, /*rows=*/1));
  ASSERT_TRUE(other.ok()) << other.status();
  ExpectOnAll(AfterTwoSteps([&](Session& session, int number, Io& io) {
                if (session.rank() == RankId(1)) return session.Load(*other).status();
                return session.Run(number, io.input_views, io.output_views);
              }),
              HasSubstr("begins step 2 of program 0 (f32[6,4], i32[6]); rank 1 loads program 1 (f32[3,4], i32[3])"));
}

TEST(RankSession, InputsThatAllRefuseLeaveTheSessionUsable) {
  for (const absl::Status& status : AfterTwoSteps([](Session&session, int number, Io&io) -> absl::Status {
         EXPECT_EQ(session.Run(number, {}, io.output_views).code(), absl::StatusCode::kInvalidArgument);
         EXPECT_EQ(session.ReadParameter("w3").status().code(), absl::StatusCode::kNotFound);
         return session.Run(number, io.input_views, io.output_views);
       })) {
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(RankSession, InputsThatOneRankRefusesEndAll) {
  const auto after = [](Session& session, int number, Io& io) {
    if (session.rank() == RankId(1)) io.input_views.pop_back();
    const absl::Status status = session.Run(number, io.input_views, io.output_views);
    EXPECT_THAT(std::string(session.ReadParameter("w1").status().message()), HasSubstr("an earlier call failed"));
    return status;
  };
  ExpectOnAll(AfterTwoSteps(after), HasSubstr("rank 1 refuses: the program has 2 inputs; 1 were given"));
}

TEST(RankSession, exception_on_one_rank) {
  const std::vector<absl::Status> statuses = AfterTwoSteps([](Session& session, int number, Io& io) {
    if (session.rank() == RankId(1)) io.inputs[1].data<int32_t>()[2] = 77;
    return session.Run(number, io.input_views, io.output_views);
  });
  ExpectOnAll(statuses, AllOf(HasSubstr("step 2, rank 1, 1F1, cell c, softmax_cross_entropy"), HasSubstr("77")));
  EXPECT_THAT(std::string(statuses[0].message()),
              testing::MatchesRegex("step 2, rank 0, 0(RECV_B|SEND_F|F).*channel '.*' \\(rank . -> rank ., tag .*\\): "
                                    "ended with another rank: step 2, rank 1.*"));
}

TEST(RankSession, NoWaitIsWithoutADeadline) {
  SessionOptions options;
  options.deadline = std::chrono::milliseconds(200);
  const std::vector<absl::Status> statuses = RunRanks(2, [&](std::unique_ptr<Transport> transport) -> absl::Status {
    const bool sleeps = transport->rank() == RankId(1);
    ASSIGN_OR_RETURN(const auto session, Session::CreateForRank(std::move(transport), options));
    if (sleeps) std::this_thread::sleep_for(std::chrono::seconds(1));
    ASSIGN_OR_RETURN(const CompiledProgram program, CompileText(Training(2)));
    return session->Load(program).status();
  });
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(statuses[0].message()), AllOf(HasSubstr("rank 0, loading program 0"),
                                                        HasSubstr("channel 'agreement' (rank 1 -> rank 0, tag 0)")));
  EXPECT_FALSE(statuses[1].ok());
}

TEST(RankSession, AStepAllocatesNothingFromTheThirdOn) {
  for (const absl::Status& status : AfterTwoSteps([](Session&session, int number, Io&io) -> absl::Status {
         const int64_t before = AllocationsOfThisThread();
         for (int step = 0; step < 10; ++step) {
           if (!session.Run(number, io.input_views, io.output_views).ok()) return absl::InternalError("a step failed");
         }
         EXPECT_EQ(AllocationsOfThisThread() - before, 0);
         return absl::OkStatus();
       })) {
    EXPECT_TRUE(status.ok()) << status;
  }
}

}  // namespace
}  // namespace pipeloom
