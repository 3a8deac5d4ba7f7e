#ifndef PLUGIN_C_API_GUARD_H_
#define PLUGIN_C_API_GUARD_H_

#include <exception>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// What stands between C and C++: a Status becomes a code and the thread's last error, and no exception gets through.
namespace pipeloom::c_api {

// Keeps the message as the thread's last error, unless the status is OK; the code of either.
int Report(const absl::Status& status) noexcept;

// The host's own error; a code that is none of the header's errors becomes Unknown.
absl::Status WithCode(int code, absl::string_view text);
// Before a callback is called; after it, what it returned with the text that it set. `what` says which callback.
void ForgetError();
absl::Status FromCallback(int code, absl::string_view what);

// Runs the body of a call.
template <typename Work>
int Guard(const Work& work) noexcept {
  try {
    return Report(work());
  } catch (const std::bad_alloc&) {
    return Report(absl::ResourceExhaustedError("out of memory"));
  } catch (const std::exception& error) {
    return Report(absl::InternalError(error.what()));
  } catch (...) {
    return Report(absl::InternalError("an exception of an unknown kind"));
  }
}

// InvalidArgument "the module is null" unless all is well. `what` names the argument.
inline absl::Status NotNull(const void* pointer, absl::string_view what) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " is a null pointer"));
}

// An array may be null where it is empty.
inline absl::Status ArrayNotNull(const void* pointer, size_t count, absl::string_view what) {
  if (count == 0) return absl::OkStatus();
  return NotNull(pointer, what);
}

}  // namespace pipeloom::c_api

#endif  // PLUGIN_C_API_GUARD_H_
