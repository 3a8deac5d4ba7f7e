#ifndef KERNELS_TRANSPORT_SHM_PORT_H_
#define KERNELS_TRANSPORT_SHM_PORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/transport/shm_file.h"
#include "kernels/transport/transport.h"

namespace pipeloom {

// A TCP port where one process tells a line of text to all who ask.
struct Port {
  std::string host;
  std::string service;  // its number

  // "host:1234" or "[::1]:1234"; InvalidArgument for anything else.
  static absl::StatusOr<Port> FromText(absl::string_view text);
};

// Listens at the port. AlreadyExists where somebody does; Unavailable where the host has no address just now.
absl::StatusOr<UniqueFd> Listen(const Port& port);

// Tells `line` to all who have asked so far.
void AnswerAll(const UniqueFd& listener, const std::string& line);

// Asks for the line. Unavailable where nobody listens, who listens hangs up, or the host has no address just now;
// DeadlineExceeded where a program listens that says nothing until the deadline, or for ten seconds.
absl::StatusOr<std::string> Ask(const Port& port, Deadline deadline);

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_SHM_PORT_H_
