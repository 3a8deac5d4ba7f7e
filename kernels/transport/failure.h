#ifndef KERNELS_TRANSPORT_FAILURE_H_
#define KERNELS_TRANSPORT_FAILURE_H_

#include <atomic>
#include <mutex>

#include "absl/status/status.h"

namespace pipeloom {

// The first error of any rank: set once, from any thread, and seen by every thread that asks afterwards. Asking costs
// one load, so that each poll of each wait can.
class Failure {
 public:
  // Keeps `status`, which is an error, unless one was set before.
  void Set(const absl::Status& status);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // OK while nothing has failed.
  absl::Status status() const { return failed() ? status_ : absl::OkStatus(); }

 private:
  std::mutex mutex_;                 // between setters only
  std::atomic<bool> failed_{false};  // publishes status_, which is never written after it
  absl::Status status_;
};

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_FAILURE_H_
