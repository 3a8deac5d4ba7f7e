#ifndef PLUGIN_RUNTIME_SESSION_CHECKS_H_
#define PLUGIN_RUNTIME_SESSION_CHECKS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/base/buffer.h"

namespace pipeloom {

// What all sessions refuse, in the same words.

// InvalidArgument unless the tensors have these types, and data. `what` is "input" or "output".
absl::Status CheckTensors(absl::string_view what, absl::Span<const TensorView> given,
                          const std::vector<TensorType>& wanted);
// InvalidArgument unless `value` can be the value of a parameter of this type.
absl::Status CheckParameterValue(const std::string& name, const TensorType& type, const TensorView& value);
absl::Status NoSuchParameterError(const std::string& name);

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_SESSION_CHECKS_H_
