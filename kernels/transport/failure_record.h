#ifndef KERNELS_TRANSPORT_FAILURE_RECORD_H_
#define KERNELS_TRANSPORT_FAILURE_RECORD_H_

#include <cstdint>

#include "absl/status/status.h"

namespace pipeloom {

// An error as plain bytes of one size, to go from process to process through shared memory or a message. It holds no
// pointer, and any bytes can be read. Smaller than what MPI sends without the receiver's help (4 KiB).
struct FailureRecord {
  static constexpr int kTextBytes = 2040;

  int32_t code;    // an absl::StatusCode
  int32_t length;  // bytes of text
  char text[kTextBytes];
};

// Code and message of `status`, which is an error; a message that is too long ends in "...". Payloads are left out.
FailureRecord ToFailureRecord(const absl::Status& status);

// The status that was recorded; Unknown where the code is none of an error's.
absl::Status ToStatus(const FailureRecord& record);

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_FAILURE_RECORD_H_
