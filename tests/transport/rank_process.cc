#include "tests/transport/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

// The report: a byte for the code, then the message.
void Report(int pipe, const absl::Status& status) {
  const std::string text = absl::StrCat(std::string(1, static_cast<char>(status.code())), status.message());
  PIPELOOM_CHECK(write(pipe, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "report of a rank");
}

}  // namespace

RankProcess::RankProcess(const std::function<absl::Status()>& body) {
  int ends[2];
  PIPELOOM_CHECK(pipe2(ends, O_CLOEXEC) == 0, "pipe");
  pid_ = fork();
  PIPELOOM_CHECK(pid_ >= 0, "fork");
  if (pid_ == 0) {
    close(ends[0]);
    Report(ends[1], body());
    _exit(0);
  }
  close(ends[1]);
  report_ = ends[0];
}

RankProcess::~RankProcess() {
  if (pid_ < 0) return;
  Signal(SIGKILL);
  Join().IgnoreError();
}

void RankProcess::Signal(int signal) {
  kill(pid_, signal);
  siginfo_t info;
  if (signal == SIGKILL) waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  if (signal == SIGSTOP) waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOWAIT);
}

absl::Status RankProcess::Join() {
  std::string text;
  char buffer[4096];
  for (ssize_t bytes; (bytes = read(report_, buffer, sizeof(buffer))) > 0;) text.append(buffer, bytes);
  close(report_);
  int end = 0;
  PIPELOOM_CHECK(waitpid(pid_, &end, 0) == pid_, "waitpid");
  pid_ = -1;
  if (WIFSIGNALED(end)) return absl::AbortedError(absl::StrCat("signal ", WTERMSIG(end)));
  if (text.empty()) return absl::AbortedError(absl::StrCat("exit status ", WEXITSTATUS(end)));
  return absl::Status(static_cast<absl::StatusCode>(text[0]), text.substr(1));
}

}  // namespace pipeloom
