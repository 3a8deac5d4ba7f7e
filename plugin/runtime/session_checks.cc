#include "plugin/runtime/session_checks.h"

#include "absl/strings/str_cat.h"

namespace pipeloom {

absl::Status CheckTensors(absl::string_view what, absl::Span<const TensorView> given,
                          const std::vector<TensorType>& wanted) {
  if (given.size() != wanted.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the program has ", wanted.size(), " ", what, "s; ", given.size(), " were given"));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].type != wanted[i]) {
      return absl::InvalidArgumentError(absl::StrCat(what, " ", i, " is ", given[i].type.ToString(),
                                                     "; the program was compiled for ", wanted[i].ToString()));
    }
    if (given[i].data == nullptr && wanted[i].bytes() > 0) {
      return absl::InvalidArgumentError(absl::StrCat(what, " ", i, " has no data"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckParameterValue(const std::string& name, const TensorType& type, const TensorView& value) {
  if (value.data == nullptr && value.type.bytes() > 0) {
    return absl::InvalidArgumentError(absl::StrCat("the value of parameter ", name, " has no data"));
  }
  if (type == value.type) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("parameter ", name, " is ", type.ToString(), "; the value is ", value.type.ToString()));
}

absl::Status NoSuchParameterError(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("no program of this session uses parameter ", name));
}

void ParameterPlaces::Add(const CompiledProgram& program) {
  Ranks& updated = updated_.emplace_back();
  for (const RankProgram& rank : program.ranks) {
    for (const ParameterRef& parameter : rank.parameters) {
      held_[parameter.name].insert(rank.rank);
      if (parameter.written) updated[parameter.name].insert(rank.rank);
    }
  }
  may_run_.clear();
  for (const Ranks& of_program : updated_) may_run_.push_back(Judge(of_program));
}

absl::Status ParameterPlaces::Judge(const Ranks& updated) const {
  for (const auto& [name, ranks] : updated) {
    for (const RankId rank : held_.at(name)) {
      if (ranks.count(rank) > 0) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("this program updates parameter ", name, ", but not on rank ", rank.value(),
                       ", where another program of the session uses it; give the cells that use it the same stages in ",
                       "all programs"));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
