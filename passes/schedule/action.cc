#include "passes/schedule/action.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

absl::Status NoAction(absl::string_view text) {
  std::vector<absl::string_view> kinds;
  for (const ActionKindInfo& info : kActionKinds) kinds.push_back(info.text);
  return absl::InvalidArgumentError(absl::StrCat("\"", text,
                                                 "\" is no action; write chunk, kind and micro-batch as in 2F0, or the "
                                                 "kind alone where it stands once a step; kinds: ",
                                                 absl::StrJoin(kinds, ", ")));
}

// Only the digits that printing gives, so that two texts never mean the same number.
bool ParseNumber(absl::string_view digits, int* number) {
  return absl::SimpleAtoi(digits, number) && absl::StrCat(*number) == digits;
}

}  // namespace

std::string ActionToString(const Action& action) {
  const ActionKindInfo& info = Info(action.kind);
  if (!info.per_micro_batch) return std::string(info.text);
  return absl::StrCat(action.chunk.value(), info.text, action.micro_batch.value());
}

std::ostream& operator<<(std::ostream& os, const Action& action) { return os << ActionToString(action); }

absl::StatusOr<Action> ParseAction(absl::string_view text) {
  size_t kind_begin = 0;
  while (kind_begin < text.size() && absl::ascii_isdigit(text[kind_begin])) ++kind_begin;
  size_t kind_end = text.size();
  while (kind_end > kind_begin && absl::ascii_isdigit(text[kind_end - 1])) --kind_end;
  const absl::string_view kind = text.substr(kind_begin, kind_end - kind_begin);
  for (const ActionKindInfo& info : kActionKinds) {
    if (info.text != kind) continue;
    if (!info.per_micro_batch) return kind == text ? absl::StatusOr<Action>(Action{info.kind}) : NoAction(text);
    int chunk = 0;
    int micro_batch = 0;
    if (!ParseNumber(text.substr(0, kind_begin), &chunk) || !ParseNumber(text.substr(kind_end), &micro_batch)) {
      return NoAction(text);
    }
    return Action{info.kind, ChunkId(chunk), MicroBatchId(micro_batch)};
  }
  return NoAction(text);
}

}  // namespace pipeloom
