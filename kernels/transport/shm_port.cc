#include "kernels/transport/shm_port.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "kernels/transport/stop_signal.h"

namespace pipeloom {
namespace {

constexpr size_t kLongestLine = 1024;
// A rank 0 answers within a millisecond. On a machine that is busy it may take longer, but not this long.
constexpr std::chrono::seconds kLongestAnswer(10);

std::string PortName(const Port& port) { return absl::StrCat("tcp://", port.host, ":", port.service); }

// The error `number` of a call, as something that may be otherwise later.
absl::Status CallError(int number, absl::string_view what) {
  return absl::UnavailableError(absl::ErrnoToStatus(number, what).message());
}

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

absl::StatusOr<AddressList> Resolve(const Port& port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(port.host.c_str(), port.service.c_str(), &hints, &list);
  const std::string what = absl::StrCat(PortName(port), " has no address: ");
  if (error == EAI_AGAIN) return absl::UnavailableError(absl::StrCat(what, gai_strerror(error)));
  if (error == EAI_SYSTEM) return absl::InvalidArgumentError(absl::ErrnoToStatus(errno, what).message());
  if (error != 0) return absl::InvalidArgumentError(absl::StrCat(what, gai_strerror(error)));
  return AddressList(list, freeaddrinfo);
}

UniqueFd OpenSocket(const addrinfo& address, int flags) {
  return UniqueFd(socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | flags, address.ai_protocol));
}

// Calls of the socket end at the deadline; false once it is over.
bool LimitTime(const UniqueFd& socket, Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline - Deadline::clock::now());
  if (left.count() <= 0) return false;
  timeval time = {};
  time.tv_sec = left.count() / 1000000;
  time.tv_usec = left.count() % 1000000;
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
  return true;
}

absl::Status NoAnswerError(const Port& port) {
  return absl::DeadlineExceededError(absl::StrCat(PortName(port), " takes connections but does not answer"));
}

absl::StatusOr<std::string> ReadLine(const UniqueFd& socket, const Port& port, Deadline deadline) {
  std::string line;
  char buffer[256];
  while (line.size() < kLongestLine && LimitTime(socket, deadline)) {
    const ssize_t bytes = recv(socket.get(), buffer, sizeof(buffer), 0);
    if (bytes < 0 && errno == EINTR && !StopRequested()) continue;
    if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (bytes < 0) return CallError(errno, absl::StrCat("reading from ", PortName(port)));
    line.append(buffer, static_cast<size_t>(bytes));
    if (!line.empty() && line.back() == '\n') return line;
    if (bytes == 0) return absl::UnavailableError(absl::StrCat(PortName(port), " hangs up without an answer"));
  }
  return NoAnswerError(port);
}

}  // namespace

absl::StatusOr<Port> Port::FromText(absl::string_view text) {
  const size_t colon = text.rfind(':');
  int number = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(text.substr(colon + 1), &number) || number < 1 ||
      number > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' has no port; give host:port, with a port from 1 to 65535"));
  }
  absl::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return absl::InvalidArgumentError(absl::StrCat("'", text, "' has no host; give host:port"));
  return Port{std::string(host), absl::StrCat(number)};
}

absl::StatusOr<UniqueFd> Listen(const Port& port) {
  ASSIGN_OR_RETURN(const AddressList addresses, Resolve(port));
  UniqueFd listener = OpenSocket(*addresses, SOCK_NONBLOCK);
  if (listener.get() < 0) return CallError(errno, "socket");
  // The connections of an earlier run that are still being closed do no harm.
  const int yes = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(listener.get(), addresses->ai_addr, addresses->ai_addrlen) == 0 && listen(listener.get(), SOMAXCONN) == 0) {
    return listener;
  }
  const int error = errno;
  const std::string what = absl::StrCat("cannot listen at ", PortName(port));
  if (error == EADDRINUSE) return absl::AlreadyExistsError(what);
  return absl::FailedPreconditionError(absl::ErrnoToStatus(error, what).message());
}

void AnswerAll(const UniqueFd& listener, const std::string& line) {
  while (true) {
    const UniqueFd asker(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (asker.get() < 0) return;
    // It fits into an empty buffer. Who has gone meanwhile needs no answer.
    [[maybe_unused]] const ssize_t sent = send(asker.get(), line.data(), line.size(), MSG_NOSIGNAL);
  }
}

absl::StatusOr<std::string> Ask(const Port& port, Deadline deadline) {
  ASSIGN_OR_RETURN(const AddressList addresses, Resolve(port));
  deadline = std::min(deadline, Deadline::clock::now() + kLongestAnswer);
  const UniqueFd socket = OpenSocket(*addresses, 0);
  if (socket.get() < 0) return CallError(errno, "socket");
  const std::string what = absl::StrCat("cannot connect to ", PortName(port));
  if (!LimitTime(socket, deadline)) return absl::UnavailableError(absl::StrCat(what, " any more: the time is over"));
  if (connect(socket.get(), addresses->ai_addr, addresses->ai_addrlen) != 0) return CallError(errno, what);
  return ReadLine(socket, port, deadline);
}

}  // namespace pipeloom
