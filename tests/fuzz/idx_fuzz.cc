// The reader of IDX files: what it accepts has as many elements as its extents say.

#include "kernels/base/status_macros.h"
#include "plugin/cells/idx_dataset.h"
#include "tests/fuzz/fuzz.h"

namespace pipeloom {

std::vector<std::string> SoundInputs() {
  using namespace std::string_literals;
  return {
      "\0\0\x08\x01\0\0\0\x03\1\2\3"s,
      "\0\0\x08\x01\0\0\0\0"s,
      "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03 one two six"s,
  };
}

}  // namespace pipeloom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pipeloom;
  for (const int axes : {1, 3}) {
    const auto array = ParseIdx(absl::string_view(reinterpret_cast<const char*>(data), size), axes);
    if (!array.ok()) continue;
    const auto elements = static_cast<size_t>(NumElements(array->shape));
    PIPELOOM_CHECK(array->elements.size() == elements, array->elements.size(), " bytes for ", elements, " elements");
  }
  return 0;
}
