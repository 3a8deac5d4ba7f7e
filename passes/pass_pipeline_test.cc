#include "passes/pass_pipeline.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/ir/print.h"

namespace pipeloom {
namespace {

using ::testing::ElementsAre;

// Sets the number of threads; 13 is refused.
class SetThreads : public Pass {
 public:
  SetThreads(absl::string_view name, int threads) : name_(name), threads_(threads) {}
  absl::string_view name() const override { return name_; }
  absl::StatusOr<bool> Run(Module& module) const override {
    if (threads_ == 13) return absl::InvalidArgumentError("13 threads; give 12");
    module.config.threads = threads_;
    return true;
  }
  absl::Status CheckAfter(const Module& module) const override {
    return module.config.threads == 7 ? absl::InternalError("7 threads") : absl::OkStatus();
  }

 private:
  absl::string_view name_;
  int threads_;
};

PassPipeline Passes(int first, int second) {
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(std::make_unique<SetThreads>("first", first));
  passes.push_back(std::make_unique<SetThreads>("second", second));
  return PassPipeline(std::move(passes));
}

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::filesystem::path FreshDirectory(absl::string_view name) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / std::string(name) / "deeper";
  std::filesystem::remove_all(path);
  return path;
}

TEST(PassPipeline, RunsPassesInOrder) {
  Module module;
  ASSERT_EQ(Passes(2, 3).Run(module, ""), absl::OkStatus());
  EXPECT_EQ(module.config.threads, 3);
}

TEST(PassPipeline, DumpsTheTextBeforeAndAfterEachPass) {
  const std::filesystem::path directory = FreshDirectory("dump");
  Module module;
  const std::string before = Print(module);
  ASSERT_EQ(Passes(2, 3).Run(module, directory.string()), absl::OkStatus());
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_THAT(names, ElementsAre("00_input.txt", "01_first.txt", "02_second.txt"));
  EXPECT_EQ(Read(directory / "00_input.txt"), before);
  EXPECT_NE(Read(directory / "01_first.txt").find("threads=2"), std::string::npos);
  EXPECT_EQ(Read(directory / "02_second.txt"), Print(module));
}

TEST(PassPipeline, ShowsTheModuleAfterEachPass) {
  Module module;
  std::vector<std::string> seen;
  const auto after = [&](const Pass& pass, const Module& shown) {
    seen.push_back(absl::StrCat(pass.name(), " ", shown.config.threads));
  };
  ASSERT_EQ(Passes(2, 3).Run(module, "", after), absl::OkStatus());
  EXPECT_THAT(seen, ElementsAre("first 2", "second 3"));
}

TEST(PassPipeline, StopsAtTheFirstError) {
  const std::filesystem::path directory = FreshDirectory("error");
  Module module;
  EXPECT_EQ(Passes(13, 3).Run(module, directory.string()),
            absl::InvalidArgumentError("pass first: 13 threads; give 12"));
  EXPECT_EQ(module.config.threads, 1);
  EXPECT_TRUE(std::filesystem::exists(directory / "00_input.txt"));
  EXPECT_FALSE(std::filesystem::exists(directory / "01_first.txt"));
}

TEST(PassPipeline, ChecksWhatAPassLeaves) {
  Module module;
  EXPECT_EQ(Passes(2, 7).Run(module, ""), absl::InternalError("pass second: afterwards, 7 threads"));
  EXPECT_EQ(Passes(0, 2).Run(module, "").code(), absl::StatusCode::kInternal);
  EXPECT_EQ(module.config.threads, 0) << "the second pass ran";
}

TEST(PassPipeline, RefusesAnUnsoundInput) {
  Module module;
  module.config.stages = 0;
  EXPECT_EQ(
      Passes(2, 3).Run(module, ""),
      absl::InvalidArgumentError("before all passes: stages, micro_batches and threads are 1 or more, not 0, 1 and 1"));
}

TEST(PassPipeline, SaysWhereItCannotWrite) {
  const std::filesystem::path file = FreshDirectory("file");
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << "a file where a directory is wanted";
  Module module;
  const absl::Status status = Passes(2, 3).Run(module, file.string());
  EXPECT_NE(status.message().find(file.string()), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("give another dump directory"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace pipeloom
