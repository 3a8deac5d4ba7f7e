#include "passes/schedule/live_window.h"

#include <algorithm>
#include <set>

#include "kernels/base/status_macros.h"

namespace pipeloom {

MicroBatchRange LastUsedBy(const Action& action, ActionKind last_use, int group, int micro_batches) {
  if (!Performs(action.kind, last_use)) return {};
  const int m = action.micro_batch.value();
  if (last_use != ActionKind::kBackwardWeight) return {m, m + 1};
  const int group_begin = m / group * group;
  const int group_end = std::min(group_begin + group, micro_batches);
  return m + 1 == group_end ? MicroBatchRange{group_begin, group_end} : MicroBatchRange{};
}

int LiveWindow(absl::Span<const Action> actions, ChunkId chunk, ActionKind first_use, ActionKind last_use, int group) {
  PIPELOOM_CHECK(group >= 1, "group of ", group, " micro-batches");
  int micro_batches = 0;
  for (const Action& action : actions) {
    if (action.chunk == chunk && IsCompute(action.kind)) {
      micro_batches = std::max(micro_batches, action.micro_batch.value() + 1);
    }
  }
  int window = 0;
  std::set<int> live;
  for (const Action& action : actions) {
    if (action.chunk != chunk) continue;
    if (Performs(action.kind, first_use)) {
      live.insert(action.micro_batch.value());
      window = std::max(window, *live.rbegin() - *live.begin() + 1);
    }
    const MicroBatchRange freed = LastUsedBy(action, last_use, group, micro_batches);
    live.erase(live.lower_bound(freed.begin), live.lower_bound(freed.end));
  }
  PIPELOOM_CHECK(live.empty(), "chunk ", chunk.value(), " uses a value in ", Info(first_use).text, " of micro-batch ",
                 *live.begin(), ", and never for the last time in ", Info(last_use).text);
  return window;
}

}  // namespace pipeloom
