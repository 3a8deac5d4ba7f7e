#include "kernels/base/nearest_names.h"

#include <algorithm>
#include <utility>

namespace pipeloom {
namespace {

// Levenshtein's distance, by one row of its table at a time.
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i));
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> NearestFirst(absl::string_view name, std::vector<std::string> choices) {
  std::vector<std::pair<int, std::string>> ranked;
  ranked.reserve(choices.size());
  for (std::string& choice : choices) {
    const int distance = EditDistance(name, choice);
    ranked.emplace_back(distance, std::move(choice));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  names.reserve(ranked.size());
  for (auto& [distance, choice] : ranked) names.push_back(std::move(choice));
  return names;
}

}  // namespace pipeloom
