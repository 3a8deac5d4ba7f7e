#ifndef TESTS_TESTLIB_RANDOM_GRAPH_H_
#define TESTS_TESTLIB_RANDOM_GRAPH_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace pipeloom {

// A small network to train, drawn from a seed: values that skip cells over any distance, cells that hand on several
// values, shared and frozen weights, cells without parameters or without a path, embeddings, integers and masks that
// are handed on, branches that the loss does not see, terms of the loss from early cells, odd sizes.
struct RandomGraph {
  std::string text;                     // the step graph; `{rows}` stands for the rows of a micro-batch
  std::string text_with_gradients;      // the same, with the gradients of all trainable parameters as outputs
  std::vector<std::string> cells;       // in program order
  std::vector<std::string> parameters;  // without the optimizer's states
  int rows = 1;                         // of a micro-batch
  int micro_batches = 1;
  int classes = 1;  // integers are below it
};

// Every sum goes along a row or into the loss, so that a batch in micro-batches has the numbers of a whole one.
RandomGraph MakeRandomGraph(uint64_t seed);

// The same on every machine, unlike the distributions of the standard library.
class RandomChoice {
 public:
  explicit RandomChoice(uint64_t seed) : random_(seed) {}

  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }
  int Between(int least, int most) { return least + Below(most - least + 1); }
  bool Percent(int chance) { return Below(100) < chance; }
  template <typename T>
  const T& Of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(Below(static_cast<int>(choices.size())))];
  }

 private:
  std::mt19937_64 random_;
};

// A stage for each of `cells` cells, in order, each stage with at least one; uneven.
std::vector<int> RandomStages(RandomChoice& choice, int cells, int stages);
// The same in any order, so that values go back to lower stages.
std::vector<int> RandomStagesWithReturns(RandomChoice& choice, int cells, int stages);

}  // namespace pipeloom

#endif  // TESTS_TESTLIB_RANDOM_GRAPH_H_
