#ifndef KERNELS_BASE_STATUS_MACROS_H_
#define KERNELS_BASE_STATUS_MACROS_H_

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

// Errors of the user travel as a Status; RETURN_IF_ERROR and ASSIGN_OR_RETURN hand them on. Errors of ours end the
// process: PIPELOOM_CHECK(condition, what) prints the condition, the place and `what` (arguments of absl::StrCat).

#define PIPELOOM_CONCAT_INNER(a, b) a##b
#define PIPELOOM_CONCAT(a, b) PIPELOOM_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                                                                 \
  do {                                                                                              \
    if (absl::Status pipeloom_status = (expression); !pipeloom_status.ok()) return pipeloom_status; \
  } while (false)

#define ASSIGN_OR_RETURN(target, expression) \
  PIPELOOM_ASSIGN_OR_RETURN(PIPELOOM_CONCAT(pipeloom_status_or_, __LINE__), target, expression)
#define PIPELOOM_ASSIGN_OR_RETURN(result, target, expression) \
  auto result = (expression);                                 \
  if (!result.ok()) return std::move(result).status();        \
  target = *std::move(result)

#define PIPELOOM_CHECK(condition, ...)                                                                      \
  do {                                                                                                      \
    if (!(condition)) {                                                                                     \
      std::fprintf(stderr, "%s:%d: internal error, %s does not hold: %s\n", __FILE__, __LINE__, #condition, \
                   absl::StrCat(__VA_ARGS__).c_str());                                                      \
      std::abort();                                                                                         \
    }                                                                                                       \
  } while (false)

namespace pipeloom {

// The same code with `context` and ": " put before the message.
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

}  // namespace pipeloom

#endif  // KERNELS_BASE_STATUS_MACROS_H_
