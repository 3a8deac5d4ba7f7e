#ifndef TESTS_TESTLIB_RANKS_H_
#define TESTS_TESTLIB_RANKS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "kernels/transport/transport.h"

namespace pipeloom {

// Runs `program` once a rank, all at the same time, each on a thread of its own with its end of in-process transports,
// as if ranks were processes. The statuses, by rank.
std::vector<absl::Status> RunRanks(int ranks,
                                   const std::function<absl::Status(std::unique_ptr<Transport> transport)>& program);

}  // namespace pipeloom

#endif  // TESTS_TESTLIB_RANKS_H_
