#ifndef PLUGIN_LAUNCH_PLACEMENT_H_
#define PLUGIN_LAUNCH_PLACEMENT_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipeloom {

// The value of an environment variable, or null.
using GetVariable = absl::FunctionRef<const char*(const char* name)>;

// Where the ranks of this run are.
struct Placement {
  enum class Kind {
    kThreads,  // all in this process
    kShm,      // this process is one; the others are on this host
    kMpi,      // this process is one
    kRestart,  // none yet: this program is to be started again under mpirun
  };
  Kind kind = Kind::kThreads;
  int rank = 0;            // kShm
  int size = 1;            // kShm
  std::string rendezvous;  // kShm, as ShmWorld's
  bool by_mpirun = false;  // started by it: kShm, kMpi
};

// From --transport and from what a launcher left in the environment:
//
//   transport  started by          ranks are
//   auto       mpirun, >1 rank     processes: over shm where all are on one host, over mpi otherwise
//              PIPELOOM_RANK, ...  processes over shm
//              anything else       threads
//   threads                        threads; refused where a launcher started more than one process
//   mpi, shm   mpirun              processes
//              PIPELOOM_RANK, ...  processes, over shm only
//              anything else       kRestart
//
// The environment of other launchers is PIPELOOM_RANK, PIPELOOM_WORLD_SIZE and PIPELOOM_RENDEZVOUS ("file:/path" or
// "tcp://host:port"). InvalidArgument for another transport, and for variables that are missing or no numbers.
absl::StatusOr<Placement> PlaceRanks(absl::string_view transport, GetVariable get);

// Is set in the environment of the program that kRestart starts, so that it does not start itself again and again.
inline constexpr char kRestartedVariable[] = "PIPELOOM_RESTARTED";

}  // namespace pipeloom

#endif  // PLUGIN_LAUNCH_PLACEMENT_H_
