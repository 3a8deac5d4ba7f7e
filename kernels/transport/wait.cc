#include "kernels/transport/wait.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/transport/stop_signal.h"

namespace pipeloom {
namespace {

using Clock = Deadline::clock;

// How long a wait keeps its core: longer than a message between running threads takes, shorter than would hurt a rank
// that shares the core.
constexpr std::chrono::microseconds kSpinTime(50);
// Polls from one look at the clock to the next while spinning: the clock may cost more than a poll.
constexpr int kPollsPerClockRead = 16;
// How long a wait goes on after SIGTERM: the failure for which a launcher sends it says more, and may be under way.
// Shorter than the second that mpirun waits before it sends SIGKILL.
constexpr std::chrono::milliseconds kTimeAfterStop(300);

void RelaxCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::string Waited(const WaitReason& reason, Clock::duration waited) {
  return absl::StrFormat("rank %d: %s, message %d: waited %.3f seconds for %s", reason.rank.value(),
                         ChannelName(reason.channel), reason.message, std::chrono::duration<double>(waited).count(),
                         reason.awaited);
}

absl::Status DeadlineError(const WaitReason& reason, Clock::duration waited) {
  const ChannelSpec& channel = reason.channel;
  const RankId other = reason.rank == channel.source ? channel.destination : channel.source;
  return absl::DeadlineExceededError(
      absl::StrCat(Waited(reason, waited), "; see what kept rank ", other.value(), ", or allow a longer wait"));
}

absl::Status StopError(const WaitReason& reason, Clock::duration waited) {
  return absl::AbortedError(absl::StrCat(Waited(reason, waited),
                                         " when the launcher ended this process with SIGTERM; see which rank died "
                                         "first"));
}

}  // namespace

absl::Status PollUntil(absl::FunctionRef<bool()> ready, const Failure& failure, Deadline deadline,
                       const WaitReason& reason) {
  const Clock::time_point start = Clock::now();
  Clock::time_point now = start;
  Clock::time_point stopped = Clock::time_point::max();
  while (true) {
    const bool spinning = now - start < kSpinTime && now < deadline;
    for (int poll = spinning ? kPollsPerClockRead : 1; poll > 0; --poll) {
      if (failure.failed()) return failure.status();
      if (ready()) return absl::OkStatus();
      if (spinning) RelaxCore();
    }
    if (now >= deadline) return DeadlineError(reason, now - start);
    if (StopRequested()) {
      stopped = std::min(stopped, now);
      if (now - stopped >= kTimeAfterStop) return StopError(reason, now - start);
    }
    if (!spinning) std::this_thread::yield();
    now = Clock::now();
  }
}

}  // namespace pipeloom
