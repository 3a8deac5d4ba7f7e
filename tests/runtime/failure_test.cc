// Errors in a step end it on every rank, say where they arose, and change no weight.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/small_session.h"

namespace pipeloom {
namespace {

using testing::HasSubstr;

std::string Classifier(int stages, const std::string& schedule) {
  return absl::StrReplaceAll(R"(
pipeline {micro_batches=4, schedule="{S}", stages={P}}
stage "a" = 0
stage "b" = {B}

graph @step(%x: f32[1,2] {batch_axis=0}, %label: i32[1] {batch_axis=0}) -> (%loss {reduce="sum"}) {
  %w1 = param "a.weight" : f32[2,2]
  %w2 = param "b.weight" : f32[2,3]
  %h = matmul(%x, %w1) : f32[1,2]  // a, forward
  %y = matmul(%h, %w2) : f32[1,3]  // b, forward
  %loss = softmax_cross_entropy(%y, %label) : f32[]  // loss, forward
} update sgd {lr=0.1}
)",
                             {{"{S}", schedule}, {"{P}", absl::StrCat(stages)}, {"{B}", absl::StrCat(stages - 1)}});
}

class FailureTest : public testing::TestWithParam<std::string> {
 protected:
  static SmallSession Start(int stages) {
    auto session = SmallSession::Start(Classifier(stages, GetParam()));
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE(session->Write("a.weight", {1, 2, 3, 4}).ok());
    EXPECT_TRUE(session->Write("b.weight", {1, 2, 3, 4, 5, 6}).ok());
    return *std::move(session);
  }
};

const std::vector<double> kX = {1, 0, 0, 1, 1, 1, 2, 1};

TEST_P(FailureTest, LabelOutOfRangeIsNamedAndChangesNothing) {
  for (const int stages : {1, 2}) {
    SmallSession session = Start(stages);
    ASSERT_TRUE(session.Step({kX, {0, 1, 2, 0}}).ok());
    const auto a = session.Read("a.weight");
    const auto b = session.Read("b.weight");
    const absl::Status status = session.Step({kX, {0, 1, 7, 0}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("rank ", stages - 1, ", ", stages - 1, "F2")));
    EXPECT_THAT(std::string(status.message()), HasSubstr("cell loss, softmax_cross_entropy"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("7"));
    EXPECT_EQ(session.Read("a.weight"), a);
    EXPECT_EQ(session.Read("b.weight"), b);
    const absl::Status later = session.Step({kX, {0, 1, 2, 0}}).status();
    EXPECT_EQ(later.code(), absl::StatusCode::kFailedPrecondition) << later;
    EXPECT_THAT(std::string(later.message()), HasSubstr("softmax_cross_entropy"));
  }
}

TEST_P(FailureTest, LossThatIsNoNumberIsRefusedBeforeTheUpdate) {
  for (const int stages : {1, 2}) {
    SmallSession session = Start(stages);
    ASSERT_TRUE(session.Step({kX, {0, 1, 2, 0}}).ok());
    const auto a = session.Read("a.weight");
    std::vector<double> broken = kX;
    broken[5] = std::numeric_limits<double>::quiet_NaN();
    const absl::Status status = session.Step({broken, {0, 1, 2, 0}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the loss of step 1 is nan"));
    EXPECT_EQ(session.Read("a.weight"), a);
    // The next step is as good as if the broken one had never been.
    SmallSession other = Start(stages);
    ASSERT_TRUE(other.Step({kX, {0, 1, 2, 0}}).ok());
    const auto next = session.Step({kX, {2, 1, 0, 0}});
    const auto same = other.Step({kX, {2, 1, 0, 0}});
    ASSERT_TRUE(next.ok()) << next.status();
    ASSERT_TRUE(same.ok()) << same.status();
    EXPECT_EQ(*next, *same);
    EXPECT_EQ(session.Read("b.weight"), other.Read("b.weight"));
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, FailureTest, testing::Values("gpipe", "1f1b"),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param == "gpipe" ? std::string("gpipe") : std::string("one_f_one_b");
                         });

absl::Status Load(const std::string& text) { return SmallSession::Start(text).status(); }

TEST(CompileFailureTest, ScheduleMustFitTheGraph) {
  const absl::Status status = Load(Classifier(2, "forward"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("choose gpipe or 1f1b or interleaved"));
}

TEST(CompileFailureTest, UnknownScheduleGetsTheChoices) {
  const absl::Status status = Load(Classifier(2, "1b1f"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1f1b"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("gpipe"));
}

TEST(SessionTest, WrongInputsAreRefusedBeforeAnythingRuns) {
  auto session = Session::Create(2, {});
  ASSERT_TRUE(session.ok());
  EXPECT_THAT(std::string(Session::Create(0, {}).status().message()), HasSubstr("0 ranks"));
  SessionOptions no_time;
  no_time.deadline = std::chrono::milliseconds(0);
  EXPECT_THAT(std::string(Session::Create(1, no_time).status().message()), HasSubstr("deadline"));
  EXPECT_EQ((*session)->ReadParameter("w").status().code(), absl::StatusCode::kNotFound);
}

#ifndef __SANITIZE_THREAD__  // which needs threads of its own
// Whether another thread can be started.
bool StartsThread() {
  try {
    std::thread([] {}).join();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

TEST(SessionTest, TooFewThreadsAreAnError) {
  constexpr int kNoLimit = 2;
  const pid_t child = fork();
  if (child == 0) {
    // The limit does not bind root.
    const bool is_other = setuid(65534) == 0;
    const rlimit one = {1, 1};
    if (setrlimit(RLIMIT_NPROC, &one) != 0 || StartsThread()) std::_Exit(is_other ? kNoLimit + 1 : kNoLimit);
    const absl::Status status = Session::Create(4, {}).status();
    const bool named = status.code() == absl::StatusCode::kResourceExhausted &&
                       absl::StrContains(status.message(), "a thread for each of 4 ranks");
    std::_Exit(named ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kNoLimit) GTEST_SKIP() << "no limit of threads binds this user";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace pipeloom
