#include "kernels/transport/stop_signal.h"

#include <atomic>
#include <csignal>

namespace pipeloom {
namespace {

// A signal handler has no other way to say anything.
std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers may touch no other");

void OnSigterm(int) { stop_requested.store(true, std::memory_order_relaxed); }

}  // namespace

void EndWaitsOnSigterm() {
  struct sigaction action = {};
  action.sa_handler = OnSigterm;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
}

bool StopRequested() { return stop_requested.load(std::memory_order_relaxed); }

}  // namespace pipeloom
