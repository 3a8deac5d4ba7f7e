#ifndef KERNELS_TRANSPORT_MPI_H_
#define KERNELS_TRANSPORT_MPI_H_

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/transport/transport.h"

namespace pipeloom {

// Ranks as processes that one mpirun started, on one host or on several: rank and size are those of MPI_COMM_WORLD.
// Messages are never waited for inside MPI, so every wait has its deadline; they move on while this rank waits, and in
// Progress(). The sender writes into slots of its own, whose bytes go to the receiver's slots of the same number; as
// many receives are posted as there are free slots, and each Release sends a credit back. Neither end waits for the
// other to open; the first wait of each end waits for the other end's spec. Ends may outlive the transport.
//
// Used by one thread, the one that made it (Fail and failure: any thread). Made by all ranks, in the same order; the
// first one initializes MPI.
//
// DeadlineExceeded, naming the ranks that did not come, after `start_deadline`; FailedPrecondition after FinalizeMpi.
// MPI_Init itself cannot be interrupted: if it does not return in that time, the process says so and ends with code 1.
absl::StatusOr<std::unique_ptr<Transport>> MakeMpiTransport(std::chrono::milliseconds start_deadline);

// The process's last words to MPI where all is well: waits for all ranks to come here, then finalizes MPI. Messages
// under way still arrive. DeadlineExceeded if a rank does not come, and then LeaveMpi is what remains; if MPI_Finalize
// itself does not return, the process says so and ends with code 1. OK where MPI was never initialized.
absl::Status FinalizeMpi(std::chrono::milliseconds deadline);

// The process's last words to MPI after a failure. MPI_Finalize would wait for ever for a peer that is stopped or dead.
// So the other ranks get two seconds to hear of the failure and to come here too, each with its own message printed,
// and then this process is to end; mpirun ends what is left with SIGTERM and SIGKILL. If MPI itself does not return,
// the process says so and ends with `exit_code`, which is not 0.
void SayLastWordsToMpi(int exit_code);

// The same, and then ends the process. No destructor runs; stdio is flushed.
[[noreturn]] void LeaveMpi(int exit_code);

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_MPI_H_
