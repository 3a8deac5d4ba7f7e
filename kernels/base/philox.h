#ifndef KERNELS_BASE_PHILOX_H_
#define KERNELS_BASE_PHILOX_H_

#include <array>
#include <cstdint>

namespace pipeloom {

constexpr uint32_t LowWord(uint64_t value) { return static_cast<uint32_t>(value); }
constexpr uint32_t HighWord(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

// Philox4x32-10 of J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011:
// a bijection of the 128-bit counter for each 64-bit key; four independent words.
inline std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {HighWord(product1) ^ counter[1] ^ key[0], LowWord(product1), HighWord(product0) ^ counter[3] ^ key[1],
               LowWord(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

}  // namespace pipeloom

#endif  // KERNELS_BASE_PHILOX_H_
