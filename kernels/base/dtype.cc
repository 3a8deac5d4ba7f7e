#include "kernels/base/dtype.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipeloom {

absl::StatusOr<DType> ParseDType(absl::string_view name) {
  std::vector<absl::string_view> choices;
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.dtype;
    choices.push_back(info.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown element type '", name, "'; choose one of ", absl::StrJoin(choices, ", ")));
}

}  // namespace pipeloom
