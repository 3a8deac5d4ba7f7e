#ifndef KERNELS_BASE_NEAREST_NAMES_H_
#define KERNELS_BASE_NEAREST_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pipeloom {

// `choices` ordered by the number of characters to insert, remove or replace to get from `name` to each; equals keep
// their order. For messages about a name that is none of the choices.
std::vector<std::string> NearestFirst(absl::string_view name, std::vector<std::string> choices);

}  // namespace pipeloom

#endif  // KERNELS_BASE_NEAREST_NAMES_H_
