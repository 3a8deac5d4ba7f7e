#include "passes/schedule/slots_in_flight.h"

#include <algorithm>
#include <vector>

#include "kernels/base/status_macros.h"
#include "passes/schedule/live_window.h"

namespace pipeloom {

int SlotsInFlight(const Simulation& simulation, const CommunicationEdge& edge, ActionKind released_after, int group) {
  PIPELOOM_CHECK(group >= 1, "group of ", group, " micro-batches");
  std::vector<TimedAction> makers;  // message k is made by makers[k]
  std::vector<TimedAction> users;
  for (const std::vector<TimedAction>& timeline : simulation.timelines) {
    for (const TimedAction& timed : timeline) {
      if (timed.action.chunk == edge.source && Performs(timed.action.kind, KindsOf(edge.forward).part)) {
        makers.push_back(timed);
      }
      if (timed.action.chunk == edge.destination) users.push_back(timed);
    }
  }
  const int messages = static_cast<int>(makers.size());
  std::vector<double> last_use(messages, -1);  // by micro-batch
  for (const TimedAction& timed : users) {
    const MicroBatchRange used = LastUsedBy(timed.action, released_after, group, messages);
    for (int m = used.begin; m < used.end; ++m) last_use[m] = timed.end;
  }
  for (double time : last_use) PIPELOOM_CHECK(time >= 0, EdgeToString(edge), " is never released");
  int slots = 0;
  int released = 0;
  for (int k = 0; k < messages; ++k) {
    // In turn: a message that is used for the last time keeps its slot while an earlier one is in use.
    while (released < k && last_use[makers[released].action.micro_batch.value()] <= makers[k].start) ++released;
    slots = std::max(slots, k - released + 1);
  }
  return slots;
}

}  // namespace pipeloom
