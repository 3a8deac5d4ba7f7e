#ifndef PLUGIN_C_API_TYPES_H_
#define PLUGIN_C_API_TYPES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/base/attributes.h"
#include "kernels/base/buffer.h"
#include "plugin/c_api/pipeloom.h"

// Values of C as ours, checked, and ours as C's, borrowed. `what` names the argument in errors.
namespace pipeloom::c_api {

absl::StatusOr<absl::string_view> ReadString(const char* text, absl::string_view what);

absl::StatusOr<TensorType> ReadType(const pipeloom_type* type, absl::string_view what);
// Writes to `view`, which allocates nothing from the second time on. Errors do not say which tensor it is.
absl::Status ReadTensor(const pipeloom_tensor& tensor, TensorView* view);
absl::StatusOr<AttributeMap> ReadAttributes(const pipeloom_attribute* attributes, size_t count);

// Points into `type`.
pipeloom_type Borrow(const TensorType& type);
std::vector<pipeloom_type> Borrow(const std::vector<TensorType>& types);
// Points into `attributes`.
std::vector<pipeloom_attribute> Borrow(const AttributeMap& attributes);

}  // namespace pipeloom::c_api

#endif  // PLUGIN_C_API_TYPES_H_
