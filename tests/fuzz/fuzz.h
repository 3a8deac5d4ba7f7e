#ifndef TESTS_FUZZ_FUZZ_H_
#define TESTS_FUZZ_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// What a file of this folder gives: an entry that must return 0 for any bytes, or end the process where it finds a
// fault, and sound inputs to begin with. The entry is that of clang's libFuzzer; driver.cc runs it where there is none.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace pipeloom {
std::vector<std::string> SoundInputs();
}  // namespace pipeloom

#endif  // TESTS_FUZZ_FUZZ_H_
