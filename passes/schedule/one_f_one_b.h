#ifndef PASSES_SCHEDULE_ONE_F_ONE_B_H_
#define PASSES_SCHEDULE_ONE_F_ONE_B_H_

#include <vector>

#include "passes/schedule/schedule.h"

namespace pipeloom {

// Compute actions of `rank`, whose one chunk has the rank's number; picture in the source file.
std::vector<Action> OneForwardOneBackward(const ScheduleShape& shape, RankId rank);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_ONE_F_ONE_B_H_
