#include "kernels/transport/failure.h"

#include "kernels/base/status_macros.h"

namespace pipeloom {

void Failure::Set(const absl::Status& status) {
  PIPELOOM_CHECK(!status.ok(), "a rank fails with an error, not with OK");
  std::lock_guard<std::mutex> lock(mutex_);
  if (failed()) return;
  status_ = status;
  failed_.store(true, std::memory_order_release);
}

}  // namespace pipeloom
