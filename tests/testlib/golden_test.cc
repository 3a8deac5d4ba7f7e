#include "tests/testlib/golden.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/ir/module.h"

namespace pipeloom::testlib {
namespace {

using ::testing::HasSubstr;

// Sets the threads, and says what it is told to say.
class FakePass : public Pass {
 public:
  FakePass(int threads, bool says_changed) : threads_(threads), says_changed_(says_changed) {}
  absl::string_view name() const override { return "fake"; }
  absl::StatusOr<bool> Run(Module& module) const override {
    if (threads_ == 13) return absl::InvalidArgumentError("13 threads bring bad luck; give 12");
    module.config.threads = threads_;
    return says_changed_;
  }

 private:
  int threads_;
  bool says_changed_;
};

GoldenCase OneThread() {
  return {"# one thread\n", "pipeline {micro_batches=1, schedule=\"1f1b\", stages=1, threads=1}\n", {}, {}};
}

TEST(Golden, ReadsAndWritesTheSameText) {
  const std::string text = "# what\n--- before\na\nb\n--- after\nc\n";
  const absl::StatusOr<GoldenCase> golden = ParseGoldenCase(text);
  ASSERT_TRUE(golden.ok()) << golden.status();
  EXPECT_EQ(golden->comment, "# what\n");
  EXPECT_EQ(golden->before, "a\nb\n");
  EXPECT_EQ(golden->after, "c\n");
  EXPECT_FALSE(golden->error.has_value());
  EXPECT_EQ(FormatGoldenCase(*golden), text);
}

TEST(Golden, RefusesCasesThatAreNone) {
  for (absl::string_view text : {"", "--- after\na\n", "--- before\n--- before\n", "--- before\n--- beyond\n",
                                 "--- before\n--- after\n--- error\n"}) {
    EXPECT_FALSE(ParseGoldenCase(text).ok()) << text;
  }
}

TEST(Golden, GivesWhatComesOut) {
  const absl::StatusOr<GoldenCase> result = RunGoldenCase(FakePass(2, true), "case", OneThread());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(*result->after, HasSubstr("threads=2"));
  EXPECT_FALSE(result->error.has_value());
}

TEST(Golden, GivesTheErrorThatComesOut) {
  const absl::StatusOr<GoldenCase> result = RunGoldenCase(FakePass(13, true), "case", OneThread());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->error, "pass fake: 13 threads bring bad luck; give 12\n");
  EXPECT_FALSE(result->after.has_value());
}

TEST(Golden, CatchesAPassThatIsDishonestAboutChange) {
  const absl::Status silent = RunGoldenCase(FakePass(2, false), "case", OneThread()).status();
  EXPECT_THAT(std::string(silent.message()), HasSubstr("says that it kept the text, which is another"));
  const absl::Status loud = RunGoldenCase(FakePass(1, true), "unchanged_case", OneThread()).status();
  EXPECT_THAT(std::string(loud.message()), HasSubstr("says that it changed the text, which is the same"));
}

TEST(Golden, CatchesACaseWithTheWrongName) {
  EXPECT_FALSE(RunGoldenCase(FakePass(2, true), "unchanged_case", OneThread()).ok());
  EXPECT_FALSE(RunGoldenCase(FakePass(1, false), "case", OneThread()).ok());
  EXPECT_TRUE(RunGoldenCase(FakePass(1, false), "unchanged_case", OneThread()).ok());
}

TEST(Golden, CatchesAPassThatLeavesAnUnsoundModule) {
  const absl::Status status = RunGoldenCase(FakePass(0, true), "case", OneThread()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pass fake: afterwards, "));
}

}  // namespace
}  // namespace pipeloom::testlib
