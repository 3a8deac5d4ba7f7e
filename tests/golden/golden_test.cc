// All cases tests/golden/<pass>/<behaviour>.txt. --update_goldens writes what comes out into the source tree.

#include "tests/testlib/golden.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "passes/pipeline_parallel.h"

namespace pipeloom::testlib {
namespace {

namespace fs = std::filesystem;

constexpr char kFolder[] = "tests/golden";  // in the workspace, and in the runfiles, where tests start

// Where --update_goldens writes; empty without it.
fs::path& UpdateRoot() {
  static fs::path& root = *new fs::path();
  return root;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// "<pass>/<behaviour>.txt", sorted.
std::vector<std::string> CaseFiles() {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kFolder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().lexically_relative(kFolder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const auto& pass : PipelineParallelPasses()) names.emplace_back(pass->name());
  return names;
}

std::string TestName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.find(".txt"));
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class GoldenFile : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenFile, GivesWhatIsWritten) {
  const fs::path file = GetParam();
  const std::vector<std::unique_ptr<Pass>> passes = PipelineParallelPasses();
  const auto pass = std::find_if(passes.begin(), passes.end(),
                                 [&](const auto& other) { return other->name() == file.parent_path().string(); });
  ASSERT_NE(pass, passes.end()) << "no pass of the list is named " << file.parent_path();
  const std::string text = ReadFile(kFolder / file);
  const absl::StatusOr<GoldenCase> written = ParseGoldenCase(text);
  ASSERT_TRUE(written.ok()) << written.status();
  const absl::StatusOr<GoldenCase> result = RunGoldenCase(**pass, file.stem().string(), *written);
  ASSERT_TRUE(result.ok()) << result.status();
  const std::string result_text = FormatGoldenCase(*result);
  if (UpdateRoot().empty()) {
    EXPECT_EQ(text, result_text) << "if this is right: bazel run //tests/golden:golden_test -- --update_goldens";
  } else if (text != result_text) {
    std::ofstream target(UpdateRoot() / file, std::ios::binary | std::ios::trunc);
    target << result_text;
    target.close();
    ASSERT_TRUE(target.good()) << UpdateRoot() / file;
    std::cout << "rewritten: " << kFolder << "/" << file.string() << "\n";
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFile, ::testing::ValuesIn(CaseFiles()), TestName);

class GoldenPass : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenPass, HasACaseOfChangeAndOneOfNone) {
  int changes = 0;
  int others = 0;
  for (const std::string& file : CaseFiles()) {
    if (!absl::StartsWith(file, GetParam() + "/")) continue;
    const absl::StatusOr<GoldenCase> golden = ParseGoldenCase(ReadFile(fs::path(kFolder) / file));
    ASSERT_TRUE(golden.ok()) << file << ": " << golden.status();
    const bool unchanged = absl::StartsWith(fs::path(file).filename().string(), "unchanged_");
    (golden->error || unchanged ? others : changes) += 1;
  }
  EXPECT_GE(changes, 1) << "give " << kFolder << "/" << GetParam() << " a case with '--- after'";
  EXPECT_GE(others, 1) << "give " << kFolder << "/" << GetParam() << " an unchanged_* case or one with '--- error'";
}

INSTANTIATE_TEST_SUITE_P(All, GoldenPass, ::testing::ValuesIn(PassNames()), TestName);

}  // namespace
}  // namespace pipeloom::testlib

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && std::string(argv[1]) == "--update_goldens") {
    const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
    if (workspace == nullptr) {
      std::cerr << "--update_goldens: run it as bazel run //tests/golden:golden_test -- --update_goldens\n";
      return 1;
    }
    pipeloom::testlib::UpdateRoot() = std::filesystem::path(workspace) / pipeloom::testlib::kFolder;
  } else if (argc > 1) {
    std::cerr << "unknown argument " << argv[1] << "; the only one is --update_goldens\n";
    return 1;
  }
  return RUN_ALL_TESTS();
}
