#ifndef TESTS_TRANSPORT_CONFORMANCE_H_
#define TESTS_TRANSPORT_CONFORMANCE_H_

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "kernels/base/ids.h"
#include "kernels/transport/transport.h"

namespace pipeloom {

// A transport under test: how to make its `size` ranks, each to be driven by a thread of its own. Where ranks are
// processes, each of which runs the tests, those of the others are null.
struct TransportCase {
  std::string name;
  std::function<absl::StatusOr<std::vector<std::unique_ptr<Transport>>>(int size)> make;  // Unavailable: skipped

  friend std::ostream& operator<<(std::ostream& os, const TransportCase& transport) { return os << transport.name; }
};

// Every transport there is, one a line; started by mpirun, mpi alone.
std::vector<TransportCase> TransportCases();

// Every test of the suite is for one transport and one number of ranks.
class TransportTest : public ::testing::TestWithParam<std::tuple<TransportCase, int>> {
 protected:
  using Body = std::function<absl::Status(Transport&)>;

  void SetUp() override;
  int size() const { return std::get<int>(GetParam()); }
  RankId last() const { return RankId(size() - 1); }

  // Fresh transports on all ranks.
  void MakeTransports();

  // Runs body on a thread for each rank (a process runs its own), and waits for all. An error or exception of one rank
  // poisons the others, as in a real run. The status of each rank; the transports live on.
  std::vector<absl::Status> RunRanks(const Body& body);
  // The same, where every rank is to succeed.
  void RunRanksOk(const Body& body);

  // One of kCounters that all ranks share, be they threads or processes; 0 at the beginning of a test.
  static constexpr int kCounters = 8;
  std::atomic<int64_t>& Counter(int number);

  std::vector<std::unique_ptr<Transport>> transports_;  // by rank; null where another process has it

 private:
  std::array<std::atomic<int64_t>, kCounters> counters_ = {};
};

// The tests of two ranks, the first and the last of 2 or more.
class TransportPairTest : public TransportTest {};

// A deadline that only a hang reaches.
Deadline Soon();
Deadline After(std::chrono::milliseconds time);

// Drives `transport` while this rank has nothing else to do, until `done` (or Soon).
void ProgressUntil(Transport& transport, const std::function<bool()>& done);

ChannelSpec Spec(RankId source, RankId destination, int tag, int64_t bytes, int slots = 1);

// Bytes that tell the channel, the message and the place in it.
void FillMessage(const ChannelSpec& spec, int64_t k, char* slot);
// DataLoss naming the first byte that is not as FillMessage left it.
absl::Status CheckMessage(const ChannelSpec& spec, int64_t k, const char* slot);

// Acquire, fill, send; and receive, check, release.
absl::Status SendMessage(SendEnd& end, const ChannelSpec& spec, int64_t k);
absl::Status ReceiveMessage(ReceiveEnd& end, const ChannelSpec& spec, int64_t k);

// The source sends `count` messages on each channel in turn, the destination checks them.
absl::Status Stream(Transport& transport, const std::vector<ChannelSpec>& specs, int64_t count);

}  // namespace pipeloom

#endif  // TESTS_TRANSPORT_CONFORMANCE_H_
