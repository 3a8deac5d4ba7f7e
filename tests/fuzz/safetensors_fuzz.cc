// The safetensors reader: what it accepts has as many bytes as the file has data.

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "plugin/cells/safetensors.h"
#include "tests/fuzz/fuzz.h"

namespace pipeloom {
namespace {

std::string File(const std::string& header, size_t data_bytes) {
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  return absl::StrCat(file, header, std::string(data_bytes, 'x'));
}

}  // namespace

std::vector<std::string> SoundInputs() {
  return {
      File("{}", 0),
      File(R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24),
      File(R"({"__metadata__":{"format":"pt"},"a.b":{"dtype":"I32","shape":[],"data_offsets":[8,12]},)"
           R"("c":{"dtype":"F32","shape":[1,2,1],"data_offsets":[0,8]},"e":{"dtype":"F32","shape":[0,7],)"
           R"("data_offsets":[12,12]}}  )",
           12),
  };
}

}  // namespace pipeloom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pipeloom;
  const auto tensors = ParseSafetensors(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!tensors.ok()) return 0;
  size_t bytes = 0;
  for (const auto& [name, tensor] : *tensors) bytes += static_cast<size_t>(tensor.type().bytes());
  size_t header = 8;
  for (size_t i = 0; i < 8; ++i) header += static_cast<size_t>(data[i]) << (8 * i);
  PIPELOOM_CHECK(header + bytes == size, bytes, " bytes in tensors, ", header, " in the header, of ", size);
  return 0;
}
