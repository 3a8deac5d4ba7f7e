#include "kernels/base/attributes.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipeloom {
namespace {

template <typename T>
T Get(const AttributeMap& attributes, absl::string_view name, const T& fallback) {
  auto it = attributes.find(name);
  if (it == attributes.end()) return fallback;
  const T* value = std::get_if<T>(&it->second);
  if (value == nullptr) {
    std::fprintf(stderr, "attribute '%s' has another type than its reader expects: %s\n", it->first.c_str(),
                 AttributeToString(it->second).c_str());
    std::abort();
  }
  return *value;
}

std::string DoubleToString(double value) {
  char text[32];
  const auto result = std::to_chars(text, text + sizeof(text), value);
  std::string shortest(text, result.ptr);
  if (shortest.find_first_of(".en") == std::string::npos) shortest += ".0";
  return shortest;
}

struct Printer {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const { return DoubleToString(value); }
  std::string operator()(const std::string& value) const { return absl::StrCat("\"", absl::CEscape(value), "\""); }
  std::string operator()(const std::vector<int64_t>& value) const {
    return absl::StrCat("[", absl::StrJoin(value, ","), "]");
  }
};

}  // namespace

bool GetBool(const AttributeMap& attributes, absl::string_view name, bool fallback) {
  return Get<bool>(attributes, name, fallback);
}
int64_t GetInt(const AttributeMap& attributes, absl::string_view name, int64_t fallback) {
  return Get<int64_t>(attributes, name, fallback);
}
double GetDouble(const AttributeMap& attributes, absl::string_view name, double fallback) {
  return Get<double>(attributes, name, fallback);
}
std::string GetString(const AttributeMap& attributes, absl::string_view name, absl::string_view fallback) {
  return Get<std::string>(attributes, name, std::string(fallback));
}
std::vector<int64_t> GetInts(const AttributeMap& attributes, absl::string_view name,
                             const std::vector<int64_t>& fallback) {
  return Get<std::vector<int64_t>>(attributes, name, fallback);
}

std::string AttributeToString(const Attribute& attribute) { return std::visit(Printer(), attribute); }

std::string AttributesToString(const AttributeMap& attributes) {
  if (attributes.empty()) return "";
  std::string text = "{";
  for (const auto& [name, value] : attributes) {
    if (text.size() > 1) text += ", ";
    text += name;
    const bool* flag = std::get_if<bool>(&value);
    if (flag == nullptr || !*flag) absl::StrAppend(&text, "=", AttributeToString(value));
  }
  return text + "}";
}

}  // namespace pipeloom
