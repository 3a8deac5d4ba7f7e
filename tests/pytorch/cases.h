#ifndef TESTS_PYTORCH_CASES_H_
#define TESTS_PYTORCH_CASES_H_

#include <memory>
#include <string>
#include <vector>

#include "plugin/cells/optimizer.h"
#include "plugin/cells/pipeline.h"

namespace pipeloom {

// What a loss compares the network's output with.
enum class Targets {
  kLabels,  // i32[n]
  kOneHot,  // f32[n, 10]
  kPixels,  // f32[n, 784], the images themselves
};

// A network on digits, and how it is trained.
struct Case {
  std::string name;
  std::shared_ptr<Cell> network;  // with initial values of its own seed
  std::shared_ptr<Cell> loss;
  Targets targets;
  Optimizer optimizer;
  int stages;
  std::string schedule;
  int micro_batches;
  std::string loss_reduction;
};

// The cases of pytorch_test.py, which has the same networks by these names.
std::vector<Case> PytorchCases();

}  // namespace pipeloom

#endif  // TESTS_PYTORCH_CASES_H_
