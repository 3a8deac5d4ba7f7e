#ifndef PASSES_SCHEDULE_INTERLEAVED_H_
#define PASSES_SCHEDULE_INTERLEAVED_H_

#include <vector>

#include "passes/schedule/schedule.h"

namespace pipeloom {

// Compute actions of `rank`, whose chunks are rank, rank + ranks, rank + 2 ranks, ...; picture in the source file.
std::vector<Action> Interleaved(const ScheduleShape& shape, RankId rank);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_INTERLEAVED_H_
