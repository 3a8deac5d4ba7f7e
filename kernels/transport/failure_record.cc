#include "kernels/transport/failure_record.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

static_assert(std::is_trivially_copyable_v<FailureRecord> && sizeof(FailureRecord) == 2048, "no padding");

constexpr absl::string_view kCut = "...";

// The longest beginning of `text` of at most `bytes` bytes that does not end within a UTF-8 character.
absl::string_view Beginning(absl::string_view text, size_t bytes) {
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

bool IsErrorCode(int32_t code) {
  return code >= static_cast<int32_t>(absl::StatusCode::kCancelled) &&
         code <= static_cast<int32_t>(absl::StatusCode::kUnauthenticated);
}

}  // namespace

FailureRecord ToFailureRecord(const absl::Status& status) {
  PIPELOOM_CHECK(!status.ok(), "a rank fails with an error, not with OK");
  FailureRecord record = {};
  record.code = static_cast<int32_t>(status.code());
  absl::string_view text = status.message();
  const bool fits = text.size() <= sizeof(record.text);
  if (!fits) text = Beginning(text, sizeof(record.text) - kCut.size());
  std::copy(text.begin(), text.end(), record.text);  // an empty one may have no address, which memcpy wants
  record.length = static_cast<int32_t>(text.size());
  if (!fits) {
    std::memcpy(record.text + record.length, kCut.data(), kCut.size());
    record.length += static_cast<int32_t>(kCut.size());
  }
  return record;
}

absl::Status ToStatus(const FailureRecord& record) {
  const absl::StatusCode code =
      IsErrorCode(record.code) ? static_cast<absl::StatusCode>(record.code) : absl::StatusCode::kUnknown;
  const int32_t length = std::clamp<int32_t>(record.length, 0, FailureRecord::kTextBytes);
  return absl::Status(code, absl::string_view(record.text, static_cast<size_t>(length)));
}

}  // namespace pipeloom
