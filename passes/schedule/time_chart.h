#ifndef PASSES_SCHEDULE_TIME_CHART_H_
#define PASSES_SCHEDULE_TIME_CHART_H_

#include <string>

#include "passes/schedule/simulate.h"

namespace pipeloom {

// The step as text, one line a rank, `columns` characters for the step's time: each action begins with | and its text,
// cut short where the next one begins; time without work is dots. 1f1b, 2 ranks, 2 micro-batches, F = B = W:
//
//   |0F0|0F1........|0BW0   ....|0BW1   |
//   ....|1F0|1BW0   |1F1|1BW1   ........|
std::string TimeChart(const Simulation& simulation, int columns);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_TIME_CHART_H_
