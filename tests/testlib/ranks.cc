#include "tests/testlib/ranks.h"

#include <thread>
#include <utility>

#include "kernels/transport/in_process.h"

namespace pipeloom {

std::vector<absl::Status> RunRanks(int ranks,
                                   const std::function<absl::Status(std::unique_ptr<Transport> transport)>& program) {
  std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(ranks);
  std::vector<absl::Status> statuses(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < transports.size(); ++rank) {
    threads.emplace_back([&, rank] { statuses[rank] = program(std::move(transports[rank])); });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

}  // namespace pipeloom
