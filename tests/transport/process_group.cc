#include "tests/transport/process_group.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

// More than the deadline of any wait in a test, so that a wait that hangs is what fails, and says where; and a test
// whose thousands of messages each cost a time slice, on a machine that is busy with other things, comes to its end.
constexpr std::chrono::minutes kLongestTest(5);

}  // namespace

// As the kernel makes it, all zeros.
struct ProcessGroup::Shared {
  static constexpr int kRanks = 8;
  static constexpr size_t kTextBytes = 4000;

  struct Status {
    int code;
    char text[kTextBytes];
  };
  std::atomic<int64_t> arrivals;  // at barriers, over all ranks and barriers
  std::atomic<int64_t> counters[kCounters];
  Status statuses[kRanks];
};

ProcessGroup* ProcessGroup::Get() {
  static ProcessGroup* const group = Make();
  return group;
}

ProcessGroup* ProcessGroup::Make() {
  int rank = 0, size = 0;
  const char* const rank_text = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* const size_text = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (rank_text == nullptr || size_text == nullptr) return nullptr;
  PIPELOOM_CHECK(absl::SimpleAtoi(rank_text, &rank) && absl::SimpleAtoi(size_text, &size) && size <= Shared::kRanks,
                 "rank ", rank_text, " of ", size_text);
  const char* const path = std::getenv("PIPELOOM_TEST_SHARED_FILE");
  PIPELOOM_CHECK(path != nullptr, "PIPELOOM_TEST_SHARED_FILE names a new file that all processes share");
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  PIPELOOM_CHECK(file >= 0 && ftruncate(file, sizeof(Shared)) == 0, path, ": ", std::strerror(errno));
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  PIPELOOM_CHECK(memory != MAP_FAILED, path, ": ", std::strerror(errno));
  close(file);
  return new ProcessGroup(rank, size, path, static_cast<Shared*>(memory));
}

std::atomic<int64_t>& ProcessGroup::counter(int number) {
  PIPELOOM_CHECK(number >= 0 && number < kCounters, "counter ", number);
  return shared_->counters[number];
}

void ProcessGroup::BeginTest() {
  Barrier([] {});  // nobody is still in the test before
  for (std::atomic<int64_t>& counter : shared_->counters) counter.store(0);
  Barrier([] {});
}

std::vector<absl::Status> ProcessGroup::Gather(const absl::Status& mine, const std::function<void()>& drive) {
  const std::string text(mine.message().substr(0, Shared::kTextBytes - 1));
  shared_->statuses[rank_].code = mine.raw_code();
  std::memcpy(shared_->statuses[rank_].text, text.c_str(), text.size() + 1);
  Barrier(drive);
  std::vector<absl::Status> all;
  for (int rank = 0; rank < size_; ++rank) {
    const Shared::Status& status = shared_->statuses[rank];
    all.emplace_back(static_cast<absl::StatusCode>(status.code), status.text);
  }
  Barrier(drive);  // nobody writes the next one before all have read
  return all;
}

void ProcessGroup::Barrier(const std::function<void()>& drive) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t awaited = ++barriers_ * size_;
  shared_->arrivals.fetch_add(1);
  while (shared_->arrivals.load() < awaited) {
    drive();
    std::this_thread::yield();
    PIPELOOM_CHECK(std::chrono::steady_clock::now() - start < kLongestTest, "rank ", rank_, " waited ",
                   kLongestTest.count(), " minutes for the others: ", awaited - shared_->arrivals.load(),
                   " did not come");
  }
}

}  // namespace pipeloom
