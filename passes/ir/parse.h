#ifndef PASSES_IR_PARSE_H_
#define PASSES_IR_PARSE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "passes/ir/module.h"

namespace pipeloom {

// Reads the text form that print.h describes; line breaks and blanks between its parts do not matter, the pipeline line
// may be left out (its defaults hold), and so may what follows `//` (no cell, no stage, forward). An op of the table
// has the result types that its rule gives; an op that the table does not know is a host op and needs its types
// written.
//
// InvalidArgument "line 3, column 9: 'bf16': ..." on anything else: values that no line above defines, names defined
// twice, types that contradict the op table, numbers out of range. What Verify demands beyond that is not checked.
absl::StatusOr<Module> Parse(absl::string_view text);

}  // namespace pipeloom

#endif  // PASSES_IR_PARSE_H_
