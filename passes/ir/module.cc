#include "passes/ir/module.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace pipeloom {

std::vector<std::string> CellsOfCall(const Node& call) {
  const auto cells = call.attributes.find("cells");
  if (cells == call.attributes.end()) return {call.info.cell};
  return absl::StrSplit(std::get<std::string>(cells->second), ',');
}

std::string CellInCall(const Node& call, absl::string_view cell) {
  const std::vector<std::string> covered = CellsOfCall(call);
  absl::string_view path = covered[0];
  if (call.attributes.find("cells") != call.attributes.end()) {
    const std::pair<absl::string_view, absl::string_view> split = absl::StrSplit(cell, absl::MaxSplits('.', 1));
    size_t number = 0;
    if (absl::SimpleAtoi(split.first, &number) && number < covered.size()) path = covered[number];
    cell = split.second;
  }
  return absl::StrCat(path, path.empty() || cell.empty() ? "" : ".", cell);
}

}  // namespace pipeloom
