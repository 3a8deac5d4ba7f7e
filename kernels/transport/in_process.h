#ifndef KERNELS_TRANSPORT_IN_PROCESS_H_
#define KERNELS_TRANSPORT_IN_PROCESS_H_

#include <memory>
#include <vector>

#include "kernels/transport/transport.h"

namespace pipeloom {

// Ranks as threads of one process: element r is for rank r of `size` (1 or more) and is used by that rank's thread. The
// sender writes straight into the receiver's slot, so no byte is copied. Either end may be opened first, and neither
// waits for the other; ends outlive their transport, and transports each other. After the opening of a channel nothing
// takes a lock or allocates, except to report an error.
std::vector<std::unique_ptr<Transport>> MakeInProcessTransports(int size);

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_IN_PROCESS_H_
