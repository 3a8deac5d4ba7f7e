#include "plugin/runtime/rank_threads.h"

#include <exception>
#include <utility>

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

}  // namespace

RankThreads::RankThreads(int ranks) : statuses_(static_cast<size_t>(ranks)) {
  for (int rank = 0; rank < ranks; ++rank) threads_.emplace_back([this, rank] { Loop(rank); });
}

RankThreads::~RankThreads() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::Span<const absl::Status> RankThreads::Run(const Job& job) {
  std::unique_lock<std::mutex> lock(mutex_);
  job_ = &job;
  running_ = static_cast<int>(threads_.size());
  ++generation_;
  start_.notify_all();
  done_.wait(lock, [this] { return running_ == 0; });
  return statuses_;
}

void RankThreads::Loop(int rank) {
  int64_t last = 0;
  for (;;) {
    const Job* job = nullptr;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      start_.wait(lock, [&] { return stop_ || generation_ != last; });
      if (stop_) return;
      last = generation_;
      job = job_;
    }
    absl::Status status = RunGuarded(*job, rank);
    std::lock_guard<std::mutex> lock(mutex_);
    statuses_[static_cast<size_t>(rank)] = std::move(status);
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace pipeloom
