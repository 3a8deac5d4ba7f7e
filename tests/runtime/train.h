#ifndef TESTS_RUNTIME_TRAIN_H_
#define TESTS_RUNTIME_TRAIN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/base/buffer.h"
#include "passes/ir/module.h"
#include "tests/testlib/reference_ops.h"

namespace pipeloom {

// How to run a network: all that must not change its bits.
struct Layout {
  int stages = 1;
  std::string schedule = "1f1b";
  int micro_batches = 1;
  std::vector<int> stage_of_cell = {};  // of each of the cells; empty: equal shares, or in turn where interleaved
  bool outlined = true;                 // false: repeated cells make no blocks; for one stage
};

// What came of a few steps of training.
struct Trained {
  std::vector<float> losses;
  std::vector<float> outputs;  // of the last step, beside the loss
  std::map<std::string, std::vector<float>> parameters;

  friend bool operator==(const Trained& a, const Trained& b) {
    return a.losses == b.losses && a.outputs == b.outputs && a.parameters == b.parameters;
  }
};

// A small network as text: its step graph takes micro-batches of `{rows}` rows and returns a loss, then perhaps values
// of f32; `{reduce}` is how the losses of micro-batches make one. Its cells are spread over the stages as `cells` lists
// them, in order.
struct Network {
  std::string text;
  std::vector<std::string> cells;
  std::vector<std::string> parameters;  // trained ones and states, to compare
};

// The module for a whole batch of `batch` rows under `layout`.
Module BuildModule(const Network& network, int batch, const Layout& layout);

// Runs `steps` steps on inputs and initial values drawn from fixed seeds (integers: labels in [0, classes)).
absl::StatusOr<Trained> TrainPipelined(const Network& network, int batch, int steps, int classes, const Layout& layout);

// The same in double, by plain loops over the whole batch at once: no micro-batches, no stages, no kernels of ours.
Trained TrainReference(const Network& network, int batch, int steps, int classes);

}  // namespace pipeloom

#endif  // TESTS_RUNTIME_TRAIN_H_
