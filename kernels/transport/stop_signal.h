#ifndef KERNELS_TRANSPORT_STOP_SIGNAL_H_
#define KERNELS_TRANSPORT_STOP_SIGNAL_H_

namespace pipeloom {

// From here on SIGTERM, with which a launcher ends the other ranks when one has died, does not end the process but its
// waits for other ranks: each fails and says where it was. A second SIGTERM ends the process. For the main function of
// a rank that is a process: a signal handler belongs to the whole process.
void EndWaitsOnSigterm();

// Whether the signal has come. One load.
bool StopRequested();

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_STOP_SIGNAL_H_
