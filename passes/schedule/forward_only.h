#ifndef PASSES_SCHEDULE_FORWARD_ONLY_H_
#define PASSES_SCHEDULE_FORWARD_ONLY_H_

#include <vector>

#include "passes/schedule/schedule.h"

namespace pipeloom {

// Compute actions of `rank`, whose chunks are rank, rank + ranks, ...; picture in the source file.
std::vector<Action> ForwardOnly(const ScheduleShape& shape, RankId rank);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_FORWARD_ONLY_H_
