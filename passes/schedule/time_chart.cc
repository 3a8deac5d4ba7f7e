#include "passes/schedule/time_chart.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace pipeloom {

std::string TimeChart(const Simulation& simulation, int columns) {
  const double scale = simulation.step_time > 0 ? columns / simulation.step_time : 0;
  std::string chart;
  for (const std::vector<TimedAction>& timeline : simulation.timelines) {
    std::string line(columns, '.');
    for (const TimedAction& timed : timeline) {
      const size_t begin = std::lround(timed.start * scale);
      const size_t width = std::lround(timed.end * scale) - begin;
      std::string cell = absl::StrCat("|", ActionToString(timed.action));
      cell.resize(width, ' ');
      line.replace(begin, width, cell);
    }
    absl::StrAppend(&chart, line, "|\n");
  }
  return chart;
}

}  // namespace pipeloom
