#ifndef KERNELS_TRANSPORT_SHM_RENDEZVOUS_H_
#define KERNELS_TRANSPORT_SHM_RENDEZVOUS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/transport/shm.h"
#include "kernels/transport/shm_ranks.h"

namespace pipeloom {

// How the ranks of a world find the arena that the first of them makes: where they meet, its address is left. Meets as
// `world` says, and waits until all ranks have come, or one fails, or start_deadline is over. The ranks, of which this
// one has joined. InvalidArgument for a world that cannot be.
absl::StatusOr<std::unique_ptr<ShmRanks>> MeetRanks(const ShmWorld& world);

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_SHM_RENDEZVOUS_H_
