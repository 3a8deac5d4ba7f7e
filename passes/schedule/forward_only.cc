#include "passes/schedule/forward_only.h"

namespace pipeloom {

// Inference. 3 ranks, 4 micro-batches (TimeChart):
//
//   |0F0|0F1|0F2|0F3........|
//   ....|1F0|1F1|1F2|1F3....|
//   ........|2F0|2F1|2F2|2F3|
std::vector<Action> ForwardOnly(const ScheduleShape& shape, RankId rank) {
  std::vector<Action> actions;
  actions.reserve(shape.micro_batches);
  for (int m = 0; m < shape.micro_batches; ++m) {
    actions.push_back({ActionKind::kForward, ChunkId(rank.value()), MicroBatchId(m)});
  }
  return actions;
}

}  // namespace pipeloom
