// The text form: what parses prints, and parses again to the same text.

#include <algorithm>
#include <filesystem>

#include "absl/strings/string_view.h"
#include "kernels/base/file_io.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/parse.h"
#include "passes/ir/print.h"
#include "passes/ir/verify.h"
#include "tests/fuzz/fuzz.h"
#include "tests/testlib/golden.h"

namespace pipeloom {

// The modules of the golden cases.
std::vector<std::string> SoundInputs() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/golden")) {
    if (entry.path().extension() != ".txt") continue;
    const absl::StatusOr<std::string> text = ReadFile(entry.path().string());
    PIPELOOM_CHECK(text.ok(), text.status().message());
    const auto golden = testlib::ParseGoldenCase(*text);
    PIPELOOM_CHECK(golden.ok(), golden.status().message());
    texts.push_back(golden->before);
    if (golden->after) texts.push_back(*golden->after);
  }
  std::sort(texts.begin(), texts.end());  // the file system's order is any
  return texts;
}

}  // namespace pipeloom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pipeloom;
  const absl::StatusOr<Module> module = Parse(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!module.ok()) return 0;
  const absl::Status sound = Verify(*module);
  const std::string printed = Print(*module);
  const absl::StatusOr<Module> again = Parse(printed);
  PIPELOOM_CHECK(again.ok(), again.status().message(), " in\n", printed);
  PIPELOOM_CHECK(Print(*again) == printed, "printed otherwise the second time:\n", printed, "\n", Print(*again));
  PIPELOOM_CHECK(Verify(*again) == sound, Verify(*again).ToString(), " where it was ", sound.ToString());
  return 0;
}
