#include "plugin/cells/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/file_io.h"
#include "kernels/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace pipeloom {
namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr char kMetadata[] = "__metadata__";

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("not a valid safetensors file: ", parts...));
}

// The header, its entries, their lists and the numbers in them. What is deeper is dropped while it is read: the library
// goes through values by recursion, which ends the process where brackets nest by the thousand.
constexpr int kDeepest = 3;

// The JSON library's exceptions end here. It takes the last of two equal keys; a callback sees both.
absl::StatusOr<Json> ParseHeader(absl::string_view text) {
  std::set<std::string> names;
  std::string twice;
  bool too_deep = false;
  const auto note_names = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepest) too_deep = true;
    if (event == Json::parse_event_t::key && depth == 1 && !names.insert(value.get<std::string>()).second) {
      twice = value.get<std::string>();
    }
    return depth <= kDeepest;
  };
  Json header;
  try {
    header = Json::parse(text.begin(), text.end(), note_names);
  } catch (const Json::exception& error) {
    return Bad("the header is no JSON: ", error.what());
  }
  if (too_deep) return Bad("the header has lists or objects in the lists of a tensor");
  if (!header.is_object()) return Bad("the header is JSON, but no object");
  if (!twice.empty()) return Bad("tensor '", twice, "' stands in the header twice");
  return header;
}

absl::StatusOr<std::string> DumpHeader(const Json& header) {
  try {
    return header.dump();
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor's name cannot be written: ", error.what()));
  }
}

absl::StatusOr<std::vector<int64_t>> ReadIntegers(const Json& entry, const char* field, const std::string& name) {
  auto it = entry.find(field);
  if (it == entry.end() || !it->is_array()) return Bad("tensor '", name, "' has no list '", field, "'");
  std::vector<int64_t> integers;
  for (const Json& item : *it) {
    const bool fits = item.is_number_unsigned() && item.get<uint64_t>() <= std::numeric_limits<int64_t>::max();
    if (!fits)
      return Bad("tensor '", name, "': '", field, "' has ", item.dump(-1, ' ', true, Json::error_handler_t::replace),
                 ", which is no length");
    integers.push_back(item.get<int64_t>());
  }
  return integers;
}

absl::StatusOr<DType> ReadDType(const Json& entry, const std::string& name) {
  auto it = entry.find("dtype");
  if (it == entry.end() || !it->is_string()) return Bad("tensor '", name, "' has no 'dtype'");
  std::vector<absl::string_view> choices;
  for (const DTypeInfo& info : kDTypes) {
    if (it->get_ref<const std::string&>() == info.safetensors_name) return info.dtype;
    choices.push_back(info.safetensors_name);
  }
  return Bad("tensor '", name, "' has element type '", it->get_ref<const std::string&>(), "'; it can be one of ",
             absl::StrJoin(choices, ", "));
}

struct Entry {
  std::string name;
  TensorType type;
  int64_t begin;  // in the data, after the header
  int64_t end;
};

absl::StatusOr<Entry> ReadEntry(const std::string& name, const Json& json, int64_t data_bytes) {
  if (!json.is_object()) return Bad("tensor '", name, "' is no object");
  Entry entry;
  entry.name = name;
  ASSIGN_OR_RETURN(entry.type.dtype, ReadDType(json, name));
  ASSIGN_OR_RETURN(const std::vector<int64_t> shape, ReadIntegers(json, "shape", name));
  entry.type.shape.assign(shape.begin(), shape.end());
  ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, ReadIntegers(json, "data_offsets", name));
  if (offsets.size() != 2) return Bad("tensor '", name, "' has ", offsets.size(), " data_offsets, not 2");
  entry.begin = offsets[0];
  entry.end = offsets[1];
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return Bad("tensor '", name, "' has data_offsets [", entry.begin, ", ", entry.end, "], but the file has ",
               data_bytes, " bytes of data");
  }
  // In 128 bits, and stopped early, so that no shape can overflow.
  __int128 bytes = Info(entry.type.dtype).bytes;
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (size_t i = 0; i < shape.size() && !empty && bytes <= data_bytes; ++i) bytes *= shape[i];
  if ((empty ? 0 : bytes) != entry.end - entry.begin) {
    return Bad("tensor '", name, "' has shape ", ShapeToString(entry.type.shape), " of ",
               Info(entry.type.dtype).safetensors_name, ", which does not fit its ", entry.end - entry.begin,
               " bytes of data");
  }
  return entry;
}

// Sorted by place, each entry begins where the one before ends, and the last ends with the file.
absl::Status CheckCover(std::vector<const Entry*> entries, int64_t data_bytes) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  int64_t covered = 0;
  const std::string* before = nullptr;
  for (const Entry* entry : entries) {
    if (entry->begin < covered) {
      return Bad("tensors '", *before, "' and '", entry->name, "' overlap at byte ", entry->begin, " of the data");
    }
    if (entry->begin > covered) {
      return Bad("bytes ", covered, " to ", entry->begin, " of the data, before tensor '", entry->name,
                 "', belong to no tensor");
    }
    covered = entry->end;
    before = &entry->name;
  }
  if (covered != data_bytes) return Bad("bytes ", covered, " to ", data_bytes, " of the data belong to no tensor");
  return absl::OkStatus();
}

absl::StatusOr<Metadata> ReadMetadata(const Json& json) {
  if (!json.is_object()) return Bad("its '", kMetadata, "' is no object");
  Metadata metadata;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_string()) return Bad("'", name, "' in its '", kMetadata, "' is no text");
    metadata.emplace(name, value.get<std::string>());
  }
  return metadata;
}

}  // namespace

absl::StatusOr<TensorMap> ParseSafetensors(absl::string_view bytes, Metadata* metadata) {
  if (bytes.size() < kLengthBytes) {
    return Bad("it has ", bytes.size(), " bytes, and ", kLengthBytes, " are needed for the length of the header");
  }
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) header_bytes |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  bytes.remove_prefix(kLengthBytes);
  if (header_bytes > bytes.size()) {
    return Bad("the header should have ", header_bytes, " bytes, but only ", bytes.size(), " follow its length");
  }
  ASSIGN_OR_RETURN(const Json header, ParseHeader(bytes.substr(0, header_bytes)));
  const absl::string_view data = bytes.substr(header_bytes);

  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadata) {
      ASSIGN_OR_RETURN(Metadata read, ReadMetadata(json));
      if (metadata != nullptr) *metadata = std::move(read);
      continue;
    }
    ASSIGN_OR_RETURN(Entry entry, ReadEntry(name, json, static_cast<int64_t>(data.size())));
    entries.push_back(std::move(entry));
  }
  std::vector<const Entry*> by_place;
  by_place.reserve(entries.size());
  for (const Entry& entry : entries) by_place.push_back(&entry);
  RETURN_IF_ERROR(CheckCover(std::move(by_place), static_cast<int64_t>(data.size())));

  TensorMap tensors;
  for (Entry& entry : entries) {
    Tensor tensor(entry.type);
    if (entry.end > entry.begin) std::memcpy(tensor.data<char>(), data.data() + entry.begin, entry.end - entry.begin);
    tensors.emplace(std::move(entry.name), std::move(tensor));
  }
  return tensors;
}

absl::Status WriteSafetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::vector<absl::string_view> parts(2);
  int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name == kMetadata) return absl::InvalidArgumentError(absl::StrCat("a tensor cannot be named '", name, "'"));
    const TensorType& type = tensor.type();
    header[name] = {{"dtype", std::string(Info(type.dtype).safetensors_name)},
                    {"shape", std::vector<int64_t>(type.shape.begin(), type.shape.end())},
                    {"data_offsets", {offset, offset + type.bytes()}}};
    parts.emplace_back(tensor.data<char>(), static_cast<size_t>(type.bytes()));
    offset += type.bytes();
  }
  ASSIGN_OR_RETURN(std::string text, DumpHeader(header));
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  std::string length(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) length[i] = static_cast<char>(uint64_t{text.size()} >> (8 * i));
  parts[0] = length;
  parts[1] = text;
  return WriteFileAtomically(path, parts);
}

absl::StatusOr<TensorMap> ReadSafetensors(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  absl::StatusOr<TensorMap> tensors = ParseSafetensors(bytes);
  if (!tensors.ok()) return Annotate(tensors.status(), path);
  return tensors;
}

}  // namespace pipeloom
