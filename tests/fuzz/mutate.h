#ifndef TESTS_FUZZ_MUTATE_H_
#define TESTS_FUZZ_MUTATE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace pipeloom {

// Random edits of inputs: flipped bits, other bytes, pieces cut out, moved, repeated up to thousands of times or taken
// from another input, nested brackets, and numbers (as digits, or as four or eight bytes of either order) that are at
// the edges of types.
class Mutator {
 public:
  Mutator(std::vector<std::string> inputs, uint64_t seed) : inputs_(std::move(inputs)), random_(seed) {}

  // The next input, of at most kMostBytes bytes: one of `inputs` with a few edits.
  std::string Next();

  static constexpr size_t kMostBytes = 1 << 20;

 private:
  size_t Below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  void Edit(std::string& text);
  void Nest(std::string& text, size_t at);
  void WriteNumber(std::string& text);
  void WriteDigits(std::string& text, size_t at);

  std::vector<std::string> inputs_;
  std::mt19937_64 random_;  // its sequence is the same everywhere
};

}  // namespace pipeloom

#endif  // TESTS_FUZZ_MUTATE_H_
