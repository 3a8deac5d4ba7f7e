#ifndef PLUGIN_C_API_HOST_OPS_H_
#define PLUGIN_C_API_HOST_OPS_H_

#include "absl/status/statusor.h"
#include "kernels/registry/kernel_registry.h"
#include "plugin/c_api/pipeloom.h"

namespace pipeloom::c_api {

// Makes kernels that call the host. Null where it gives no host ops; InvalidArgument where it gives some of the
// callbacks only.
absl::StatusOr<KernelFactory> HostKernels(const pipeloom_host_ops& ops);

}  // namespace pipeloom::c_api

#endif  // PLUGIN_C_API_HOST_OPS_H_
