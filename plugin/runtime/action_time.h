#ifndef PLUGIN_RUNTIME_ACTION_TIME_H_
#define PLUGIN_RUNTIME_ACTION_TIME_H_

#include <chrono>

#include "passes/schedule/action.h"

namespace pipeloom {

// How long one action of a rank's program took, summed over steps.
struct ActionTime {
  Action action;
  std::chrono::nanoseconds busy{0};   // in kernels and copies
  std::chrono::nanoseconds total{0};  // with waits for other ranks
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_ACTION_TIME_H_
