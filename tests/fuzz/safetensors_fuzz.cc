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

void ReadFile(absl::string_view bytes) {
  const auto tensors = ParseSafetensors(bytes);
  if (!tensors.ok()) return;
  size_t data = 0;
  for (const auto& [name, tensor] : *tensors) data += static_cast<size_t>(tensor.type().bytes());
  size_t header = 8;
  for (size_t i = 0; i < 8; ++i) header += static_cast<size_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  PIPELOOM_CHECK(header + data == bytes.size(), data, " bytes in tensors, ", header, " before them, of ", bytes.size());
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

// The bytes as they are, then with the length that their header has: an edit of the header seldom keeps it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pipeloom;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadFile(bytes);
  const size_t end = bytes.rfind('}');
  if (end == absl::string_view::npos || end < 8) return 0;
  ReadFile(File(std::string(bytes.substr(8, end - 7)), size - end - 1));
  return 0;
}
