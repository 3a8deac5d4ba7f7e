#ifndef PLUGIN_CELLS_SAFETENSORS_H_
#define PLUGIN_CELLS_SAFETENSORS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/base/buffer.h"

namespace pipeloom {

// Tensors by name, as a safetensors file holds them: eight bytes with the length of the header (little-endian), a JSON
// header {name: {dtype, shape, data_offsets}}, and the elements.
using TensorMap = std::map<std::string, Tensor>;
// What the header says of the whole, under __metadata__: text by name.
using Metadata = std::map<std::string, std::string>;

// The bytes are a function of names, types, elements and metadata: tensors in the order of their names, the header
// filled up with spaces to a multiple of 8, nothing about time or place. Written beside, then renamed.
absl::Status WriteSafetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata = {});
absl::StatusOr<TensorMap> ReadSafetensors(const std::string& path);

// What ReadSafetensors does with the bytes of a file. InvalidArgument says what is wrong, in which tensor and at which
// byte: too short, a header that is longer than the file, no JSON or of the wrong form, a name that stands there twice,
// an element type that we do not have, and data that lies outside, overlaps, leaves gaps or does not fit the shape, and
// metadata that is no text. `metadata` may be null.
absl::StatusOr<TensorMap> ParseSafetensors(absl::string_view bytes, Metadata* metadata = nullptr);

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_SAFETENSORS_H_
