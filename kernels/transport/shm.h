#ifndef KERNELS_TRANSPORT_SHM_H_
#define KERNELS_TRANSPORT_SHM_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/transport/transport.h"

namespace pipeloom {

// What a launcher tells a rank, the same to all ranks but for `rank`.
struct ShmWorld {
  RankId rank;
  int size = 1;
  // Where the ranks find each other:
  //   file:/path/of/a/file  a file that the first rank makes and the last one removes; what an earlier run left there
  //                         does no harm
  //   tcp://host:port       rank 0 listens there while the ranks gather
  std::string rendezvous;
  std::chrono::milliseconds start_deadline{0};  // for all ranks to come, counted from this rank's coming
};

// Ranks of one host over POSIX shared memory: processes, or threads that make one each. The sender writes straight into
// the receiver's slot, and a message is one store; after the opening of a channel nothing takes a lock, calls the
// system or allocates while messages keep coming. All memory is one object, which has a name in /dev/shm only while the
// system call that makes it returns, so that no end of a run, kill -9 included, leaves anything there.
//
// Returns once all ranks have come. DeadlineExceeded names the ranks that did not; InvalidArgument, on all ranks that
// are there, names a rank that came twice or sizes that differ. Later on ResourceExhausted says that a channel does not
// fit into /dev/shm. A rank whose process has died, or that has closed its transport and ends while another one waits
// for it, ends the waits of all ranks with Unavailable, at most about 0.2 s later. A stopped process is not dead: waits
// for it end at their deadline. Not to be used on in the child of a fork.
absl::StatusOr<std::unique_ptr<Transport>> MakeShmTransport(const ShmWorld& world);

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_SHM_H_
