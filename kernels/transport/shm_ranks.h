#ifndef KERNELS_TRANSPORT_SHM_RANKS_H_
#define KERNELS_TRANSPORT_SHM_RANKS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/transport/failure.h"
#include "kernels/transport/failure_record.h"
#include "kernels/transport/shm_arena.h"

namespace pipeloom {

// One rank's view of the ranks of a world: who has come, who has gone, and the first failure. The list lies at the
// beginning of the world's arena.
class ShmRanks {
 public:
  // A new world, for `size` ranks and without one.
  static absl::StatusOr<std::unique_ptr<ShmRanks>> Create(int size);
  // The world of this arena. NotFound where there is none, or no longer.
  static absl::StatusOr<std::unique_ptr<ShmRanks>> Attach(const ArenaAddress& address);
  // Leaves: from here on waits for this rank cannot be over.
  ~ShmRanks();

  // Enters `rank` of `size` ranks. InvalidArgument, for all who have come and will come, where the world has another
  // size or the rank has come before. NotFound where all ranks had come before.
  absl::Status Join(RankId rank, int size, Deadline deadline);

  ShmArena& arena() { return *arena_; }
  int64_t list_bytes() const;  // at the beginning of the arena, in whole pages
  RankId rank() const { return rank_; }
  int size() const { return size_; }

  // Those of whom nothing has been heard.
  std::vector<RankId> Missing() const;
  // Whether all have joined, whatever they did then.
  bool IsComplete() const;
  bool HasLeft(RankId rank) const;
  // Fails with Unavailable if the process of a rank that has not left is dead.
  void CheckAlive();

  // The first failure counts for all ranks. Any thread may fail.
  void Fail(const absl::Status& status);
  // One load while nothing has failed. Once it is true, failure() is set.
  bool failed();
  const Failure& failure() const { return failure_; }

 private:
  enum class State : int32_t { kAbsent, kTooLate, kHere, kLeft };  // too late: came after a failure
  struct Entry;
  struct List;

  ShmRanks(std::unique_ptr<ShmArena> arena, ShmMapping mapping);

  static int64_t ListBytes(int size);
  Entry& entry(int rank) const;
  void Record(int entry_number, const absl::Status& status);

  const std::unique_ptr<ShmArena> arena_;
  const ShmMapping mapping_;
  List* const list_;
  const int size_;
  RankId rank_{-1};  // until this rank has joined
  std::mutex fail_mutex_;
  bool has_recorded_ = false;  // under fail_mutex_: this rank's own failure, the first or not
  Failure failure_;            // of list_, once it is seen
};

}  // namespace pipeloom

#endif  // KERNELS_TRANSPORT_SHM_RANKS_H_
