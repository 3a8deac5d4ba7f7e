#include "passes/schedule/interleaved.h"

#include <algorithm>

#include "passes/schedule/one_f_one_b.h"
#include "passes/schedule/rounds.h"

namespace pipeloom {

// 1f1b over shares that are cut into several chunks each, so that the pipeline fills and empties in steps of one chunk
// (Narayanan et al., 2021): as many forwards as it takes until the first gradient can be back, then one forward and one
// backward in turn, then the backwards that are left. A last group of micro-batches that is short is run as if it were
// full, less what it does not have: what is left of an order that does not hang does not hang. 2 ranks with 2 chunks
// each, 4 micro-batches, F = B = W (TimeChart):
//
//   |0F0|0F1|2F0|2F1|0F2....|2BW0   |0F3|2BW1   |2F2|0BW0   |2F3|0BW1   ....|2BW2   ....|2BW3   |0BW2   |0BW3   |
//   ....|1F0|1F1|3F0|3BW0   |3F1|3BW1   |1F2|1BW0   |1F3|1BW1   |3F2|3BW2   |3F3|3BW3   |1BW2   |1BW3   ........|
std::vector<Action> Interleaved(const ScheduleShape& shape, RankId rank) {
  if (shape.chunks_per_rank == 1) return OneForwardOneBackward(shape, rank);
  ScheduleShape full = shape;
  full.micro_batches = (shape.micro_batches + shape.ranks - 1) / shape.ranks * shape.ranks;
  const std::vector<ChunkWork> forward = WorkInRounds(full, rank, /*forward=*/true);
  const std::vector<ChunkWork> backward = WorkInRounds(full, rank, /*forward=*/false);
  const int ranks_after = shape.ranks - 1 - rank.value();
  const size_t warm_up = std::min<size_t>(forward.size(), 2 * ranks_after + (shape.chunks_per_rank - 1) * shape.ranks);
  std::vector<Action> actions;
  actions.reserve(2 * forward.size());
  const auto add = [&](ActionKind kind, const ChunkWork& work) {
    if (work.micro_batch.value() < shape.micro_batches) actions.push_back({kind, work.chunk, work.micro_batch});
  };
  for (size_t i = 0; i < forward.size() + warm_up; ++i) {
    if (i < forward.size()) add(ActionKind::kForward, forward[i]);
    if (i >= warm_up) add(ActionKind::kBackward, backward[i - warm_up]);
  }
  return actions;
}

}  // namespace pipeloom
