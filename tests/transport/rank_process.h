#ifndef TESTS_TRANSPORT_RANK_PROCESS_H_
#define TESTS_TRANSPORT_RANK_PROCESS_H_

#include <sys/types.h>

#include <functional>

#include "absl/status/status.h"

namespace pipeloom {

// A process of its own for one rank of a test: a fork that runs `body` and tells what came of it. To be started while
// the test has one thread only.
class RankProcess {
 public:
  explicit RankProcess(const std::function<absl::Status()>& body);
  RankProcess(const RankProcess&) = delete;
  // Kills it, if it has not been joined.
  ~RankProcess();

  pid_t pid() const { return pid_; }
  // SIGKILL, SIGSTOP, ... and returns once it has taken effect. A killed process stays a zombie until it is joined.
  void Signal(int signal);
  // The status of the body; Aborted, with the signal, where the process did not come to its end. Waits for it.
  absl::Status Join();

 private:
  pid_t pid_ = -1;
  int report_ = -1;  // the reading end of a pipe
};

}  // namespace pipeloom

#endif  // TESTS_TRANSPORT_RANK_PROCESS_H_
