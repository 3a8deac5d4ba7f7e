#ifndef TESTS_TRANSPORT_PROCESS_GROUP_H_
#define TESTS_TRANSPORT_PROCESS_GROUP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace pipeloom {

// The processes of one mpirun on this host that run the same tests in the same order, one rank each, and what they
// share beside the transport under test: a mapped file. Every wait here ends the process with a message after a minute.
class ProcessGroup {
 public:
  static constexpr int kCounters = 8;

  // Null unless mpirun started this process.
  static ProcessGroup* Get();

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::atomic<int64_t>& counter(int number);
  // A path that is the same in all processes, and new.
  std::string SharedPath(const std::string& name) const { return path_ + "." + name; }

  // Waits for all processes, and sets the counters to 0.
  void BeginTest();
  // Waits for all processes, calling `drive` meanwhile. The status of each.
  std::vector<absl::Status> Gather(const absl::Status& mine, const std::function<void()>& drive);

 private:
  struct Shared;

  ProcessGroup(int rank, int size, std::string path, Shared* shared)
      : rank_(rank), size_(size), path_(std::move(path)), shared_(shared) {}
  static ProcessGroup* Make();
  void Barrier(const std::function<void()>& drive);

  const int rank_;
  const int size_;
  const std::string path_;  // of the memory that the processes share
  Shared* const shared_;
  int64_t barriers_ = 0;
};

}  // namespace pipeloom

#endif  // TESTS_TRANSPORT_PROCESS_GROUP_H_
