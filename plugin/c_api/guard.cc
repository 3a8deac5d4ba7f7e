#include "plugin/c_api/guard.h"

#include "plugin/c_api/pipeloom.h"

namespace pipeloom::c_api {
namespace {

// The header's codes are Abseil's.
constexpr bool IsCode(int code, absl::StatusCode of) { return code == static_cast<int>(of); }
static_assert(IsCode(PIPELOOM_OK, absl::StatusCode::kOk));
static_assert(IsCode(PIPELOOM_CANCELLED, absl::StatusCode::kCancelled));
static_assert(IsCode(PIPELOOM_UNKNOWN, absl::StatusCode::kUnknown));
static_assert(IsCode(PIPELOOM_INVALID_ARGUMENT, absl::StatusCode::kInvalidArgument));
static_assert(IsCode(PIPELOOM_DEADLINE_EXCEEDED, absl::StatusCode::kDeadlineExceeded));
static_assert(IsCode(PIPELOOM_NOT_FOUND, absl::StatusCode::kNotFound));
static_assert(IsCode(PIPELOOM_ALREADY_EXISTS, absl::StatusCode::kAlreadyExists));
static_assert(IsCode(PIPELOOM_PERMISSION_DENIED, absl::StatusCode::kPermissionDenied));
static_assert(IsCode(PIPELOOM_RESOURCE_EXHAUSTED, absl::StatusCode::kResourceExhausted));
static_assert(IsCode(PIPELOOM_FAILED_PRECONDITION, absl::StatusCode::kFailedPrecondition));
static_assert(IsCode(PIPELOOM_ABORTED, absl::StatusCode::kAborted));
static_assert(IsCode(PIPELOOM_OUT_OF_RANGE, absl::StatusCode::kOutOfRange));
static_assert(IsCode(PIPELOOM_UNIMPLEMENTED, absl::StatusCode::kUnimplemented));
static_assert(IsCode(PIPELOOM_INTERNAL, absl::StatusCode::kInternal));
static_assert(IsCode(PIPELOOM_UNAVAILABLE, absl::StatusCode::kUnavailable));
static_assert(IsCode(PIPELOOM_DATA_LOSS, absl::StatusCode::kDataLoss));
static_assert(IsCode(PIPELOOM_UNAUTHENTICATED, absl::StatusCode::kUnauthenticated));

// C has no other place for what a call gives beside its code.
std::string& LastError() {
  thread_local std::string error;
  return error;
}

void SetLastError(absl::string_view text) noexcept {
  try {
    LastError().assign(text.data(), text.size());
  } catch (const std::bad_alloc&) {
    LastError().clear();
  }
}

}  // namespace

int Report(const absl::Status& status) noexcept {
  if (!status.ok()) SetLastError(status.message());
  return static_cast<int>(status.code());
}

void ForgetError() { LastError().clear(); }

absl::Status WithCode(int code, absl::string_view text) {
  const bool known = code > PIPELOOM_OK && code <= PIPELOOM_UNAUTHENTICATED;
  return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown, text);
}

absl::Status FromCallback(int code, absl::string_view what) {
  if (code == PIPELOOM_OK) return absl::OkStatus();
  return WithCode(code, LastError().empty() ? absl::StrCat(what, " returned code ", code, " and no text")
                                            : absl::StrCat(what, ": ", LastError()));
}

}  // namespace pipeloom::c_api

extern "C" {

int pipeloom_api_version(void) { return PIPELOOM_API_VERSION; }

const char* pipeloom_last_error(void) { return pipeloom::c_api::LastError().c_str(); }

void pipeloom_set_error(const char* text) { pipeloom::c_api::SetLastError(text == nullptr ? "" : text); }

}  // extern "C"
