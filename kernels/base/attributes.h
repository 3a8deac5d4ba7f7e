#ifndef KERNELS_BASE_ATTRIBUTES_H_
#define KERNELS_BASE_ATTRIBUTES_H_

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace pipeloom {

// What a node says beside its operands. Ordered by name, so that printing needs no further order.
using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>>;
using AttributeMap = std::map<std::string, Attribute, std::less<>>;

// The attribute `name`, or `fallback` where it is absent. A value of another type is a bug in the caller (the op table
// has checked names and types before) and ends the process.
bool GetBool(const AttributeMap& attributes, absl::string_view name, bool fallback);
int64_t GetInt(const AttributeMap& attributes, absl::string_view name, int64_t fallback);
double GetDouble(const AttributeMap& attributes, absl::string_view name, double fallback);
std::string GetString(const AttributeMap& attributes, absl::string_view name, absl::string_view fallback);
std::vector<int64_t> GetInts(const AttributeMap& attributes, absl::string_view name,
                             const std::vector<int64_t>& fallback);

// {axis=0, lr=0.01, mode="sum", perm=[1,0], transpose_a}: a true bool is its bare name, a false one name=false; doubles
// keep a '.' or exponent and read back to the same bits. "" for an empty map.
std::string AttributesToString(const AttributeMap& attributes);
std::string AttributeToString(const Attribute& attribute);

}  // namespace pipeloom

#endif  // KERNELS_BASE_ATTRIBUTES_H_
