// Random edits of sound texts: each is parsed or refused with a place, and what is parsed prints and parses again.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "passes/ir/parse.h"
#include "passes/ir/print.h"
#include "passes/ir/verify.h"
#include "tests/ir/texts.h"
#include "tests/testlib/golden.h"

namespace pipeloom {
namespace {

constexpr int kEditedTexts = 20000;

// What the grammar gives a meaning, and bytes that it does not know.
constexpr const char* kPieces[] = {"(",
                                   ")",
                                   "{",
                                   "}",
                                   "[",
                                   "]",
                                   ",",
                                   ":",
                                   "=",
                                   "->",
                                   "//",
                                   "%",
                                   "@",
                                   "\"",
                                   "\\",
                                   "#",
                                   "\n",
                                   "%x",
                                   "@g",
                                   "-",
                                   "-1",
                                   "0",
                                   "1e99",
                                   "nan",
                                   "stage",
                                   "graph",
                                   "constant",
                                   "param",
                                   "saved",
                                   "chunk",
                                   "\xff",
                                   "99999999999999999999",
                                   "9223372036854775807",
                                   "f32[9999999999]",
                                   "true",
                                   "4611686018427387904"};

std::vector<std::string> SoundTexts() {
  std::vector<std::string> texts = {kStepText, kSplitText, kOddText, kBlockText};
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/golden")) {
    if (entry.path().extension() != ".txt") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const auto golden = testlib::ParseGoldenCase(std::string(std::istreambuf_iterator<char>(file), {}));
    EXPECT_TRUE(golden.ok()) << entry.path() << golden.status();
    if (!golden.ok()) continue;
    texts.push_back(golden->before);
    if (golden->after) texts.push_back(*golden->after);
  }
  std::sort(texts.begin() + 3, texts.end());
  return texts;
}

class Editor {
 public:
  explicit Editor(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  std::string Next() {
    std::string text = texts_[Below(texts_.size())];
    for (size_t edits = 1 + Below(4); edits > 0; --edits) Edit(text);
    return text;
  }

 private:
  size_t Below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void Edit(std::string& text) {
    const size_t at = Below(text.size());
    const size_t length = Below(std::min<size_t>(text.size() - at, 20));
    switch (Below(6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[Below(std::size(kPieces))]);
        break;
      case 2:
        text.replace(at, length, kPieces[Below(std::size(kPieces))]);
        break;
      case 3:
        if (!text.empty()) text[at] = static_cast<char>(Below(256));
        break;
      case 4:
        text.insert(at, text.substr(Below(text.size()), 60));
        break;
      default:
        if (Below(10) == 0) text.resize(at);
    }
  }

  std::vector<std::string> texts_;
  std::mt19937 random_{20260101};  // its sequence is the same everywhere
};

TEST(Mutation, EditedTextsParseOrAreRefused) {
  Editor editor(SoundTexts());
  int parsed = 0;
  int sound = 0;
  for (int i = 0; i < kEditedTexts; ++i) {
    const std::string text = editor.Next();
    const absl::StatusOr<Module> module = Parse(text);
    if (!module.ok()) {
      ASSERT_EQ(module.status().code(), absl::StatusCode::kInvalidArgument) << text;
      ASSERT_TRUE(absl::StartsWith(module.status().message(), "line ")) << module.status() << "\n" << text;
      continue;
    }
    ++parsed;
    const absl::Status status = Verify(*module);
    sound += status.ok() ? 1 : 0;
    const std::string printed = Print(*module);
    const absl::StatusOr<Module> again = Parse(printed);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
    ASSERT_EQ(Print(*again), printed);
    ASSERT_EQ(Verify(*again), status) << printed;
  }
  // Edits neither spare nor break all texts, or this test shows nothing.
  EXPECT_GT(parsed - sound, kEditedTexts / 1000);
  EXPECT_GT(sound, kEditedTexts / 100);
  EXPECT_GT(kEditedTexts - parsed, kEditedTexts / 10);
}

TEST(Mutation, EveryPrefixParsesOrIsRefused) {
  for (absl::string_view text : {kStepText, kSplitText, kOddText}) {
    for (size_t length = 0; length < text.size(); ++length) {
      const absl::StatusOr<Module> module = Parse(text.substr(0, length));
      EXPECT_TRUE(module.ok() || absl::StartsWith(module.status().message(), "line ")) << module.status();
    }
  }
}

TEST(Mutation, ManyBracketsAreNoDanger) {
  for (absl::string_view piece :
       {"(", "{", "[", "graph @g", "\"", "%", "//", "-", "graph @g() -> () {", "stage \"\" = 0 "}) {
    std::string text;
    for (int i = 0; i < 100000; ++i) text.append(piece.data(), piece.size());
    const absl::StatusOr<Module> module = Parse(text);
    EXPECT_TRUE(module.ok() || absl::StartsWith(module.status().message(), "line ")) << piece;
  }
}

}  // namespace
}  // namespace pipeloom
