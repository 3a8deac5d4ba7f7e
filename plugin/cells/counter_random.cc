#include "plugin/cells/counter_random.h"

#include <cmath>

#include "kernels/base/digest.h"
#include "kernels/base/philox.h"

namespace pipeloom {
namespace {

constexpr double kPi = 3.14159265358979323846;

}  // namespace

CounterRandom::CounterRandom(uint64_t seed, absl::string_view name)
    : key_{LowWord(seed), HighWord(seed)}, name_hash_(Digest(name)) {}

std::array<uint32_t, 4> CounterRandom::Words(uint64_t index) const {
  return Philox4x32({LowWord(index), HighWord(index), LowWord(name_hash_), HighWord(name_hash_)}, key_);
}

double CounterRandom::Uniform(uint64_t index) const { return (Words(index)[0] >> 8) * 0x1p-24; }

double CounterRandom::Normal(uint64_t index) const {
  const std::array<uint32_t, 4> words = Words(index);
  const double radius_uniform = (words[0] + 1.0) * 0x1p-32;  // in (0, 1]: its logarithm is finite
  const double angle_uniform = words[1] * 0x1p-32;
  return std::sqrt(-2.0 * std::log(radius_uniform)) * std::cos(2.0 * kPi * angle_uniform);
}

uint64_t CounterRandom::Below(uint64_t bound, uint64_t index) const {
  const std::array<uint32_t, 4> words = Words(index);
  const uint64_t random = uint64_t{words[1]} << 32 | words[0];
  return static_cast<uint64_t>(static_cast<unsigned __int128>(random) * bound >> 64);
}

}  // namespace pipeloom
