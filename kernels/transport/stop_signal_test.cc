#include "kernels/transport/stop_signal.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "kernels/transport/in_process.h"

namespace pipeloom {
namespace {

// Waits for a message that does not come, and says how that ended.
[[noreturn]] void WaitAndSay(const std::vector<std::unique_ptr<Transport>>& ranks) {
  const auto receive = ranks[1]->OpenReceive({RankId(0), RankId(1), ChannelTag(0), "h", 4, 1});
  if (!receive.ok()) std::_Exit(2);
  const absl::Status status = (*receive)->Receive(0, Deadline::clock::now() + std::chrono::seconds(20));
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::_Exit(status.ok() ? 3 : 1);
}

TEST(StopSignalDeathTest, EndsAWaitWhichSaysWhereItWas) {
  EXPECT_EXIT(
      {
        EndWaitsOnSigterm();
        std::raise(SIGTERM);
        WaitAndSay(MakeInProcessTransports(2));
      },
      testing::ExitedWithCode(1),
      "ABORTED: rank 1: channel 'h' .rank 0 -> rank 1, tag 0., message 0: waited 0.* seconds for its arrival when the "
      "launcher ended this process with SIGTERM");
}

TEST(StopSignalDeathTest, TheFailureForWhichTheSignalCameSaysMore) {
  EXPECT_EXIT(
      {
        EndWaitsOnSigterm();
        std::raise(SIGTERM);
        const auto ranks = MakeInProcessTransports(2);
        ranks[0]->Fail(absl::UnavailableError("rank 0 has died"));
        WaitAndSay(ranks);
      },
      testing::ExitedWithCode(1), "UNAVAILABLE: rank 0 has died");
}

TEST(StopSignalDeathTest, ASecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        EndWaitsOnSigterm();
        std::raise(SIGTERM);
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace pipeloom
