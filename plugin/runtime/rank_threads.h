#ifndef PLUGIN_RUNTIME_RANK_THREADS_H_
#define PLUGIN_RUNTIME_RANK_THREADS_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace pipeloom {

// One thread a rank, alive as long as this is: kernels and their OpenMP settings belong to a thread.
class RankThreads {
 public:
  using Job = std::function<absl::Status(int rank)>;

  explicit RankThreads(int ranks);
  ~RankThreads();

  // Runs the job once on each rank's thread and waits for all; the statuses by rank, valid until the next call. An
  // exception becomes an Internal status with its text. Allocates nothing.
  absl::Span<const absl::Status> Run(const Job& job);

 private:
  void Loop(int rank);

  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  const Job* job_ = nullptr;
  int64_t generation_ = 0;
  int running_ = 0;
  bool stop_ = false;
  std::vector<absl::Status> statuses_;
  std::vector<std::thread> threads_;
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_RANK_THREADS_H_
