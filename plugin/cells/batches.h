#ifndef PLUGIN_CELLS_BATCHES_H_
#define PLUGIN_CELLS_BATCHES_H_

#include <cstdint>
#include <vector>

#include "kernels/base/buffer.h"
#include "plugin/cells/idx_dataset.h"

namespace pipeloom {

// The numbers 0 .. size-1 in an order that is a function of (seed, epoch) alone: the shuffle of R. Fisher and F. Yates
// (D. Knuth, TAOCP 2, algorithm 3.4.2 P) with counter-based random numbers.
std::vector<int64_t> ShuffledOrder(int64_t size, uint64_t seed, int epoch);

// Room for the inputs of one step.
struct MnistBatch {
  MnistBatch(const MnistDataset& dataset, int64_t batch_size);

  Tensor images;      // f32[batch, 1, rows, columns]: (pixel / 255 - 0.1307) / 0.3081, mean and deviation of MNIST
  Tensor labels;      // i32[batch]
  int64_t valid = 0;  // the first rows, which hold digits; the others hold zeros
};

// Fills `batch` with the digits order[begin], order[begin + 1], ...; as many as it has room for, or until the order
// ends.
void FillBatch(const MnistDataset& dataset, const std::vector<int64_t>& order, int64_t begin, MnistBatch& batch);

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_BATCHES_H_
