#include "passes/schedule/gpipe.h"

namespace pipeloom {

// All forwards, then all backwards, both in micro-batch order, in which gradients accumulate. 3 ranks, 4 micro-batches,
// F = B = W (TimeChart):
//
//   |0F0|0F1|0F2|0F3........................|0BW0   |0BW1   |0BW2   |0BW3   |
//   ....|1F0|1F1|1F2|1F3............|1BW0   |1BW1   |1BW2   |1BW3   ........|
//   ........|2F0|2F1|2F2|2F3|2BW0   |2BW1   |2BW2   |2BW3   ................|
std::vector<Action> Gpipe(const ScheduleShape& shape, RankId rank) {
  const ChunkId chunk(rank.value());
  std::vector<Action> actions;
  actions.reserve(size_t{2} * shape.micro_batches);
  for (int m = 0; m < shape.micro_batches; ++m) {
    actions.push_back({ActionKind::kForward, chunk, MicroBatchId(m)});
  }
  for (int m = 0; m < shape.micro_batches; ++m) {
    actions.push_back({ActionKind::kBackward, chunk, MicroBatchId(m)});
  }
  return actions;
}

}  // namespace pipeloom
