#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace pipeloom {
namespace {

// The last of each type and the first that is too large; lengths that multiply to more than 64 bits.
constexpr uint64_t kEdges[] = {0,
                               1,
                               127,
                               255,
                               256,
                               65535,
                               (uint64_t{1} << 31) - 1,
                               uint64_t{1} << 31,
                               (uint64_t{1} << 32) - 1,
                               uint64_t{1} << 32,
                               uint64_t{1} << 60,
                               (uint64_t{1} << 63) - 1,
                               uint64_t{1} << 63,
                               ~uint64_t{0}};

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

}  // namespace

std::string Mutator::Next() {
  std::string text = inputs_[Below(inputs_.size())];
  for (size_t edits = 1 + Below(5); edits > 0; --edits) Edit(text);
  if (text.size() > kMostBytes) text.resize(kMostBytes);
  return text;
}

void Mutator::Edit(std::string& text) {
  const size_t at = Below(text.size());
  const size_t length = Below(std::min<size_t>(text.size() - at, 40));
  switch (Below(10)) {
    case 0:
      if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << Below(8)));
      break;
    case 1:
      if (!text.empty()) text[at] = static_cast<char>(Below(256));
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      if (Below(10) == 0) text.resize(at);
      break;
    case 4:
      text.insert(at, text.substr(Below(text.size()), length));
      break;
    case 5: {
      const std::string& other = inputs_[Below(inputs_.size())];
      text.replace(at, length, other.substr(Below(other.size()), Below(200)));
      break;
    }
    case 6: {
      // Nesting and long lists.
      const std::string piece = text.substr(at, 1 + Below(8));
      std::string repeated;
      for (size_t times = Below(10) == 0 ? Below(50000) : Below(20); times > 0; --times) repeated += piece;
      text.insert(at, repeated);
      break;
    }
    case 7:
      Nest(text, at);
      break;
    default:
      WriteNumber(text);
  }
}

// Brackets in place of the next digits, at times by the thousand.
void Mutator::Nest(std::string& text, size_t at) {
  const size_t depth = Below(4) == 0 ? Below(50000) : 1 + Below(4);
  const auto first = std::find_if(text.begin() + static_cast<ptrdiff_t>(at), text.end(), IsDigit);
  const auto last = std::find_if_not(first, text.end(), IsDigit);
  text.replace(first, last, absl::StrCat(std::string(depth, '['), std::string(depth, ']')));
}

void Mutator::WriteNumber(std::string& text) {
  const size_t at = Below(text.size());
  if (Below(2) == 0) return WriteDigits(text, at);
  const size_t bytes = Below(2) == 0 ? 4 : 8;
  if (at + bytes > text.size()) return;
  const uint64_t number = kEdges[Below(std::size(kEdges))];
  const bool big_endian = Below(2) == 0;
  for (size_t i = 0; i < bytes; ++i) {
    text[at + i] = static_cast<char>(number >> (8 * (big_endian ? bytes - 1 - i : i)));
  }
}

// In place of the next digits.
void Mutator::WriteDigits(std::string& text, size_t at) {
  const auto first = std::find_if(text.begin() + static_cast<ptrdiff_t>(at), text.end(), IsDigit);
  const auto last = std::find_if_not(first, text.end(), IsDigit);
  text.replace(first, last, absl::StrCat(Below(8) == 0 ? "-" : "", kEdges[Below(std::size(kEdges))]));
}

}  // namespace pipeloom
