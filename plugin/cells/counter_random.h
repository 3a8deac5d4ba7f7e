#ifndef PLUGIN_CELLS_COUNTER_RANDOM_H_
#define PLUGIN_CELLS_COUNTER_RANDOM_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "kernels/base/philox.h"

namespace pipeloom {

// Random numbers that are a function of (seed, name, index) and of nothing else, such as how many were drawn before:
// each rank computes any of them on its own. Philox4x32-10 with the seed as its key; the counter is (index, 64-bit
// FNV-1a hash of the name).
class CounterRandom {
 public:
  CounterRandom(uint64_t seed, absl::string_view name);

  // In [0, 1), a multiple of 2^-24: exact as a float.
  double Uniform(uint64_t index) const;
  // Mean 0, standard deviation 1 (Box and Muller's transform).
  double Normal(uint64_t index) const;
  // In [0, bound), bound > 0. Off from uniform by less than bound / 2^64.
  uint64_t Below(uint64_t bound, uint64_t index) const;

 private:
  std::array<uint32_t, 4> Words(uint64_t index) const;

  std::array<uint32_t, 2> key_;
  uint64_t name_hash_;
};

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_COUNTER_RANDOM_H_
