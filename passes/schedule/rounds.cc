#include "passes/schedule/rounds.h"

#include <algorithm>

namespace pipeloom {

std::vector<ChunkWork> WorkInRounds(const ScheduleShape& shape, RankId rank, bool forward) {
  std::vector<ChunkWork> work;
  work.reserve(static_cast<size_t>(shape.micro_batches) * shape.chunks_per_rank);
  for (int group = 0; group < shape.micro_batches; group += shape.ranks) {
    const int group_end = std::min(group + shape.ranks, shape.micro_batches);
    for (int k = 0; k < shape.chunks_per_rank; ++k) {
      const int round = forward ? k : shape.chunks_per_rank - 1 - k;
      for (int m = group; m < group_end; ++m) {
        work.push_back({ChunkId(round * shape.ranks + rank.value()), MicroBatchId(m)});
      }
    }
  }
  return work;
}

}  // namespace pipeloom
