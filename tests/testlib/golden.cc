#include "tests/testlib/golden.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/parse.h"
#include "passes/ir/print.h"
#include "passes/ir/verify.h"
#include "passes/pass_pipeline.h"

namespace pipeloom::testlib {
namespace {

constexpr absl::string_view kUnchanged = "unchanged_";

absl::StatusOr<Module> ParseSound(absl::string_view text) {
  ASSIGN_OR_RETURN(Module module, Parse(text));
  RETURN_IF_ERROR(Verify(module));
  return module;
}

absl::Status CheckNameTellsChange(absl::string_view case_name, bool changed) {
  if (absl::StartsWith(case_name, kUnchanged) != changed) return absl::OkStatus();
  return absl::FailedPreconditionError(
      changed ? absl::StrCat("the text changed, and the case is named ", case_name)
              : absl::StrCat("the text did not change; name the case ", kUnchanged, case_name));
}

}  // namespace

absl::StatusOr<GoldenCase> ParseGoldenCase(absl::string_view text) {
  GoldenCase golden;
  std::optional<std::string> before;
  std::string* section = &golden.comment;
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    if (!absl::ConsumePrefix(&line, "--- ")) {
      absl::StrAppend(section, line, "\n");
      continue;
    }
    std::optional<std::string>* next = line == "before"  ? &before
                                       : line == "after" ? &golden.after
                                       : line == "error" ? &golden.error
                                                         : nullptr;
    if (next == nullptr || next->has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("section '--- ", line, "' is unknown or stands twice"));
    }
    section = &next->emplace();
  }
  if (!before || (golden.after && golden.error)) {
    return absl::InvalidArgumentError("a case has '--- before' and one of '--- after' and '--- error'");
  }
  golden.before = *std::move(before);
  return golden;
}

std::string FormatGoldenCase(const GoldenCase& golden) {
  return absl::StrCat(golden.comment, "--- before\n", golden.before,
                      golden.after ? absl::StrCat("--- after\n", *golden.after) : "",
                      golden.error ? absl::StrCat("--- error\n", *golden.error) : "");
}

absl::StatusOr<GoldenCase> RunGoldenCase(const Pass& pass, absl::string_view case_name, const GoldenCase& golden) {
  absl::StatusOr<Module> module = ParseSound(golden.before);
  if (!module.ok()) return Annotate(module.status(), "the module before");
  const std::string before = Print(*module);
  GoldenCase result{golden.comment, golden.before, {}, {}};
  const absl::StatusOr<bool> reported = RunPass(pass, *module);
  if (!reported.ok()) {
    if (reported.status().code() == absl::StatusCode::kInternal) return reported.status();
    result.error = absl::StrCat(reported.status().message(), "\n");
    return result;
  }
  result.after = Print(*module);
  const bool changed = *result.after != before;
  if (changed != *reported) {
    return absl::FailedPreconditionError(absl::StrCat("the pass says that it ", *reported ? "changed" : "kept",
                                                      " the text, which is ", changed ? "another" : "the same", ":\n",
                                                      *result.after));
  }
  RETURN_IF_ERROR(CheckNameTellsChange(case_name, changed));
  ASSIGN_OR_RETURN(const Module again, ParseSound(*result.after));
  if (Print(again) == *result.after) return result;
  return absl::FailedPreconditionError(
      absl::StrCat("parsed and printed again, the text is another one:\n", Print(again)));
}

}  // namespace pipeloom::testlib
