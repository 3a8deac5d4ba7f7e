#ifndef KERNELS_TRANSPORT_SHM_PROCESS_H_
#define KERNELS_TRANSPORT_SHM_PROCESS_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace pipeloom {

// A process of this host. Numbers of processes come again; together with the start time they do not.
struct ProcessId {
  int64_t pid = 0;
  uint64_t start = 0;  // clock ticks since the machine started
};

// The calling process. Unavailable where there is no /proc.
absl::StatusOr<ProcessId> ThisProcess();

// Whether it runs, or is stopped. One that has ended is dead from then on, also before its parent has asked for it.
bool IsAlive(const ProcessId& process);

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_SHM_PROCESS_H_
