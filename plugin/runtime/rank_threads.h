#ifndef PLUGIN_RUNTIME_RANK_THREADS_H_
#define PLUGIN_RUNTIME_RANK_THREADS_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace pipeloom {

// A thread for each rank but rank 0, which runs on the caller's: a step then has one hand-over less, and the first
// stage begins at once. Between jobs a thread spins a little and then sleeps.
class RankThreads {
 public:
  using Job = std::function<absl::Status(int rank)>;

  // Throws std::system_error where the system gives no more threads.
  explicit RankThreads(int ranks);
  ~RankThreads();

  // Runs the job once for each rank, all at the same time, and waits for all; the statuses by rank, valid until the
  // next call. An exception becomes an Internal status with its text. Allocates nothing.
  absl::Span<const absl::Status> Run(const Job& job);

 private:
  void Loop(int rank);
  void Stop();

  std::mutex mutex_;  // held to change what the conditions wait for
  std::condition_variable start_;
  std::condition_variable done_;
  const Job* job_ = nullptr;
  std::atomic<int64_t> generation_{0};  // one a job; -1 to stop
  std::atomic<int> running_{0};         // threads that have not finished the job
  std::vector<absl::Status> statuses_;
  std::vector<std::thread> threads_;
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_RANK_THREADS_H_
