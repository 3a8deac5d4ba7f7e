#ifndef TESTS_BENCH_WORKLOADS_H_
#define TESTS_BENCH_WORKLOADS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plugin/cells/pipeline.h"

namespace pipeloom {

// A network with its stages and the inputs of one step, as peers run it too.
struct Workload {
  Pipeline pipeline;
  std::vector<TensorType> inputs;
  int classes;
};

// By name, on two stages; an error lists the names.
//   mlp32: 784 -> 512 -> ReLU | 512 -> ReLU -> 10, batch 32 in 4 micro-batches; mlp512 the same with batch 512
//   wide: 8 x (Dense 1024 x 1024, ReLU), 4 | 4, batch 256 in 8 micro-batches
absl::StatusOr<Workload> MakeWorkload(const std::string& name);

}  // namespace pipeloom

#endif  // TESTS_BENCH_WORKLOADS_H_
