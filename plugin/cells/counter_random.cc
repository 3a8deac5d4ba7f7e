#include "plugin/cells/counter_random.h"

#include <cmath>

namespace pipeloom {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;
constexpr double kPi = 3.14159265358979323846;

constexpr uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
constexpr uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

uint64_t Fnv1a(absl::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {High(product1) ^ counter[1] ^ key[0], Low(product1), High(product0) ^ counter[3] ^ key[1],
               Low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

CounterRandom::CounterRandom(uint64_t seed, absl::string_view name)
    : key_{Low(seed), High(seed)}, name_hash_(Fnv1a(name)) {}

std::array<uint32_t, 4> CounterRandom::Words(uint64_t index) const {
  return Philox4x32({Low(index), High(index), Low(name_hash_), High(name_hash_)}, key_);
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
