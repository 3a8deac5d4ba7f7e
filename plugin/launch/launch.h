#ifndef PLUGIN_LAUNCH_LAUNCH_H_
#define PLUGIN_LAUNCH_LAUNCH_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/transport/transport.h"

namespace pipeloom {

struct LaunchOptions {
  std::string transport = "auto";                                  // auto, threads, mpi or shm: see placement.h
  int stages = 1;                                                  // processes to start where none are
  std::chrono::milliseconds deadline = std::chrono::seconds(300);  // for all ranks to come
};

// What this process is in its run.
struct World {
  RankId rank;
  int size = 1;                          // processes
  std::unique_ptr<Transport> transport;  // null: ranks are threads of this process
  bool has_processes = false;            // for ranks, over `transport`
  bool over_mpi = false;
  std::chrono::milliseconds deadline{0};  // for all to end
};

// Finds out which rank this process is and meets the others; the only place of Pipeloom that reads the environment.
// With `mpi` or `shm` outside a launcher it does not return but becomes `mpirun -n <stages>` of the same program with
// the same arguments. Where ranks are processes SIGTERM ends waits from here on (stop_signal.h), and ranks of mpirun
// get one if it dies. Called once, early in main, with main's arguments. NotFound where there is no mpirun, and what
// PlaceRanks and the transports give.
absl::Status JoinWorld(int argc, char** argv, const LaunchOptions& options, World* world);

// The same for a host that is no program of ours: it never starts anything. FailedPrecondition where ranks are to be
// processes, and no launcher has started them.
absl::Status JoinStartedWorld(const LaunchOptions& options, World* world);

// The last call of main, when sessions are gone: `return EndRank(...)`. Says `status` on stderr unless it is OK, after
// `program` and the rank, and tells it the other ranks if no session has; ends MPI where it was used, which after an
// error may end the process here. The exit code.
int EndRank(absl::Status status, const std::string& program, World& world);

// What EndRank does, without a word on stderr and without ending the process, for a host whose main is its own.
// `status` is OK, or why this rank ends; after an error over MPI the process is to end with another exit status than 0.
absl::Status LeaveWorld(const absl::Status& status, World& world);

}  // namespace pipeloom

#endif  // PLUGIN_LAUNCH_LAUNCH_H_
