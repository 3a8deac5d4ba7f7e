#include "plugin/runtime/rank_threads.h"

#include <chrono>
#include <exception>

#include "absl/strings/str_cat.h"

namespace pipeloom {
namespace {

absl::Status RunGuarded(const RankThreads::Job& job, int rank) {
  try {
    return job(rank);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("rank ", rank, ": exception: ", error.what()));
  }
}

// Spins until `ready` or for about as long as a sleeping thread takes to wake up.
template <typename Ready>
void SpinFor(const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  while (!ready() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

}  // namespace

RankThreads::RankThreads(int ranks) : statuses_(static_cast<size_t>(ranks)) {
  try {
    for (int rank = 1; rank < ranks; ++rank) threads_.emplace_back([this, rank] { Loop(rank); });
  } catch (...) {
    Stop();
    throw;
  }
}

RankThreads::~RankThreads() { Stop(); }

void RankThreads::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    generation_ = -1;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::Span<const absl::Status> RankThreads::Run(const Job& job) {
  job_ = &job;
  running_ = static_cast<int>(threads_.size());
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++generation_;
  }
  start_.notify_all();
  statuses_[0] = RunGuarded(job, 0);
  const auto all_done = [this] { return running_ == 0; };
  SpinFor(all_done);
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, all_done);
  return statuses_;
}

void RankThreads::Loop(int rank) {
  for (int64_t last = 0;;) {
    const auto has_job = [&] { return generation_ != last; };
    SpinFor(has_job);
    {
      std::unique_lock<std::mutex> lock(mutex_);
      start_.wait(lock, has_job);
    }
    last = generation_;
    if (last < 0) return;
    statuses_[static_cast<size_t>(rank)] = RunGuarded(*job_, rank);
    std::lock_guard<std::mutex> lock(mutex_);
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace pipeloom
