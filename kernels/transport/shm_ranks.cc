#include "kernels/transport/shm_ranks.h"

#include <new>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

constexpr size_t kCacheLine = 64;

}  // namespace

// A rank's part of the list, which it alone writes. The failure is published by List::first_failure, so a rank that
// dies while it writes one leaves nothing half said.
struct alignas(kCacheLine) ShmRanks::Entry {
  std::atomic<State> state;
  ProcessId process;
  FailureRecord failure;
};

// Followed by an entry for each rank, and one for the failure of those who cannot join (written under the lock).
struct ShmRanks::List {
  int32_t size;
  // 1 + the entry whose failure was the first; 0: none. Polled by all waits, so alone on its line.
  alignas(kCacheLine) std::atomic<int32_t> first_failure;
};

int64_t ShmRanks::ListBytes(int size) {
  static_assert(std::atomic<State>::is_always_lock_free && std::atomic<int32_t>::is_always_lock_free,
                "an atomic with a lock of its own does not work between processes");
  return static_cast<int64_t>(sizeof(List) + sizeof(Entry) * (static_cast<size_t>(size) + 1));
}

ShmRanks::ShmRanks(std::unique_ptr<ShmArena> arena, ShmMapping mapping)
    : arena_(std::move(arena)),
      mapping_(std::move(mapping)),
      list_(reinterpret_cast<List*>(mapping_.data())),
      size_(list_->size) {}

ShmRanks::~ShmRanks() {
  if (rank_.value() >= 0) entry(rank_.value()).state.store(State::kLeft, std::memory_order_release);
}

absl::StatusOr<std::unique_ptr<ShmRanks>> ShmRanks::Create(int size) {
  const int64_t bytes = ListBytes(size);
  ASSIGN_OR_RETURN(std::unique_ptr<ShmArena> arena, ShmArena::Create(bytes));
  ASSIGN_OR_RETURN(ShmMapping mapping, arena->Map(0, bytes));
  // The arena begins as zeros, which is an empty list.
  (new (mapping.data()) List{})->size = size;
  return std::unique_ptr<ShmRanks>(new ShmRanks(std::move(arena), std::move(mapping)));
}

absl::StatusOr<std::unique_ptr<ShmRanks>> ShmRanks::Attach(const ArenaAddress& address) {
  ASSIGN_OR_RETURN(std::unique_ptr<ShmArena> arena, ShmArena::Attach(address));
  int32_t size = 0;
  RETURN_IF_ERROR(arena->Read(0, &size, sizeof(size)));
  ASSIGN_OR_RETURN(ShmMapping mapping, arena->Map(0, ListBytes(size)));
  return std::unique_ptr<ShmRanks>(new ShmRanks(std::move(arena), std::move(mapping)));
}

absl::Status ShmRanks::Join(RankId rank, int size, Deadline deadline) {
  ASSIGN_OR_RETURN(const ProcessId self, ThisProcess());
  ASSIGN_OR_RETURN(const FileLock lock, arena_->Lock(deadline));
  if (IsComplete()) return absl::NotFoundError("the ranks that met here are complete");
  if (failed()) {
    State absent = State::kAbsent;
    if (size == size_) entry(rank.value()).state.compare_exchange_strong(absent, State::kTooLate);
    return failure_.status();
  }
  absl::Status refusal;
  if (size != size_) {
    refusal = absl::InvalidArgumentError(absl::StrCat("rank ", rank.value(), " (process ", self.pid,
                                                      ") was started as one of ", size,
                                                      " ranks, but the rank that came first as one of ", size_,
                                                      " ranks; start all ranks with the same number of ranks"));
  } else if (entry(rank.value()).state.load(std::memory_order_acquire) != State::kAbsent) {
    refusal = absl::InvalidArgumentError(absl::StrCat(
        "rank ", rank.value(), " was started twice, as process ", entry(rank.value()).process.pid, " and as process ",
        self.pid, "; start each rank once, and give each run a rendezvous of its own"));
  }
  if (!refusal.ok()) {
    Record(size_, refusal);
    return refusal;
  }
  rank_ = rank;
  entry(rank.value()).process = self;
  entry(rank.value()).state.store(State::kHere, std::memory_order_release);
  return absl::OkStatus();
}

std::vector<RankId> ShmRanks::Missing() const {
  std::vector<RankId> missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (entry(rank).state.load(std::memory_order_acquire) == State::kAbsent) missing.push_back(RankId(rank));
  }
  return missing;
}

bool ShmRanks::IsComplete() const {
  for (int rank = 0; rank < size_; ++rank) {
    const State state = entry(rank).state.load(std::memory_order_acquire);
    if (state != State::kHere && state != State::kLeft) return false;
  }
  return true;
}

bool ShmRanks::HasLeft(RankId rank) const {
  return entry(rank.value()).state.load(std::memory_order_acquire) == State::kLeft;
}

int64_t ShmRanks::list_bytes() const { return ShmArena::RoundUpToPages(ListBytes(size_)); }

void ShmRanks::CheckAlive() {
  for (int rank = 0; rank < size_; ++rank) {
    const Entry& other = entry(rank);
    if (other.state.load(std::memory_order_acquire) != State::kHere || IsAlive(other.process)) continue;
    // It may have left, and then ended, since its state was read.
    if (HasLeft(RankId(rank))) continue;
    Fail(absl::UnavailableError(absl::StrCat("rank ", rank, " (process ", other.process.pid,
                                             ") has died; its own output, or who killed it, says why")));
    return;
  }
}

void ShmRanks::Fail(const absl::Status& status) {
  {
    std::lock_guard<std::mutex> lock(fail_mutex_);
    if (!std::exchange(has_recorded_, true)) Record(rank_.value(), status);
  }
  failed();
}

void ShmRanks::Record(int entry_number, const absl::Status& status) {
  int32_t none = 0;
  // Where something has failed before, the record may be what others are reading.
  if (list_->first_failure.load(std::memory_order_acquire) != none) return;
  entry(entry_number).failure = ToFailureRecord(status);
  list_->first_failure.compare_exchange_strong(none, 1 + entry_number, std::memory_order_acq_rel);
}

bool ShmRanks::failed() {
  const int32_t first = list_->first_failure.load(std::memory_order_acquire);
  if (first == 0) return false;
  if (!failure_.failed()) failure_.Set(ToStatus(entry(first - 1).failure));
  return true;
}

ShmRanks::Entry& ShmRanks::entry(int rank) const { return reinterpret_cast<Entry*>(list_ + 1)[rank]; }

}  // namespace pipeloom
