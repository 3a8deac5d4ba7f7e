#ifndef TESTS_TESTLIB_GOLDEN_H_
#define TESTS_TESTLIB_GOLDEN_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "passes/pass.h"

namespace pipeloom::testlib {

// A case of a pass as text: what the case is about in '#' lines, then sections that each begin with a line of their
// own,
//
//   --- before
//   (a module)
//   --- after          or          --- error
//   (a module)                     (the message)
struct GoldenCase {
  std::string comment;
  std::string before;
  std::optional<std::string> after;
  std::optional<std::string> error;
};

// InvalidArgument where a section is unknown, stands twice or is missing; a case that has neither `after` nor `error`
// yet is one that nobody has run.
absl::StatusOr<GoldenCase> ParseGoldenCase(absl::string_view text);
std::string FormatGoldenCase(const GoldenCase& golden);

// Runs `pass`, with the checks after it, on the module `golden.before`; returns the case with what came out. Errors are
// those of the case or of the pass as a program: a module that does not parse or verify, a pass that says that it
// changed the text and did not (or the reverse), a text that does not print as it was parsed, a case named unchanged_*
// whose text changed (or the reverse).
absl::StatusOr<GoldenCase> RunGoldenCase(const Pass& pass, absl::string_view case_name, const GoldenCase& golden);

}  // namespace pipeloom::testlib

#endif  // TESTS_TESTLIB_GOLDEN_H_
