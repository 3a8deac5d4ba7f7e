#include "passes/schedule/forward_only.h"

#include "passes/schedule/rounds.h"

namespace pipeloom {

// Inference. 3 ranks, 4 micro-batches (TimeChart):
//
//   |0F0|0F1|0F2|0F3........|
//   ....|1F0|1F1|1F2|1F3....|
//   ........|2F0|2F1|2F2|2F3|
std::vector<Action> ForwardOnly(const ScheduleShape& shape, RankId rank) {
  std::vector<Action> actions;
  for (const ChunkWork& work : WorkInRounds(shape, rank, /*forward=*/true)) {
    actions.push_back({ActionKind::kForward, work.chunk, work.micro_batch});
  }
  return actions;
}

}  // namespace pipeloom
