#include "passes/schedule/one_f_one_b.h"

#include <algorithm>

namespace pipeloom {

// As many forwards as it takes until the first gradient can be back (warm-up), then one forward and one backward in
// turn (steady), then the backwards that are left (cool-down): the same time as gpipe, but rank r never holds more than
// ranks - r micro-batches. 3 ranks, 4 micro-batches, F = B = W (TimeChart):
//
//   |0F0|0F1|0F2................|0BW0   |0F3|0BW1   ....|0BW2   ....|0BW3   |
//   ....|1F0|1F1........|1BW0   |1F2|1BW1   |1F3|1BW2   ....|1BW3   ........|
//   ........|2F0|2BW0   |2F1|2BW1   |2F2|2BW2   |2F3|2BW3   ................|
std::vector<Action> OneForwardOneBackward(const ScheduleShape& shape, RankId rank) {
  const ChunkId chunk(rank.value());
  const int ranks_after = shape.ranks - 1 - rank.value();
  const int warm_up = std::min(ranks_after, shape.micro_batches);
  std::vector<Action> actions;
  actions.reserve(size_t{2} * shape.micro_batches);
  for (int m = 0; m < warm_up; ++m) {
    actions.push_back({ActionKind::kForward, chunk, MicroBatchId(m)});
  }
  for (int m = warm_up; m < shape.micro_batches; ++m) {
    actions.push_back({ActionKind::kForward, chunk, MicroBatchId(m)});
    actions.push_back({ActionKind::kBackward, chunk, MicroBatchId(m - warm_up)});
  }
  for (int m = shape.micro_batches - warm_up; m < shape.micro_batches; ++m) {
    actions.push_back({ActionKind::kBackward, chunk, MicroBatchId(m)});
  }
  return actions;
}

}  // namespace pipeloom
