#include "plugin/cells/batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/cells/counter_random.h"

namespace pipeloom {
namespace {

constexpr float kMean = 0.1307f;
constexpr float kDeviation = 0.3081f;

}  // namespace

std::vector<int64_t> ShuffledOrder(int64_t size, uint64_t seed, int epoch) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  const CounterRandom random(seed, absl::StrCat("shuffle/", epoch));
  for (uint64_t last = order.size(); last > 1; --last) {
    std::swap(order[last - 1], order[random.Below(/*bound=*/last, /*index=*/last)]);
  }
  return order;
}

MnistBatch::MnistBatch(const MnistDataset& dataset, int64_t batch_size)
    : images(TensorType{DType::kFloat32, {batch_size, 1, dataset.rows(), dataset.columns()}}),
      labels(TensorType{DType::kInt32, {batch_size}}) {}

void FillBatch(const MnistDataset& dataset, const std::vector<int64_t>& order, int64_t begin, MnistBatch& batch) {
  const int64_t rows = batch.labels.type().shape[0];
  const int64_t pixels = dataset.rows() * dataset.columns();
  float* image = batch.images.data<float>();
  int32_t* labels = batch.labels.data<int32_t>();
  batch.valid = std::max<int64_t>(0, std::min(rows, static_cast<int64_t>(order.size()) - begin));
  for (int64_t row = 0; row < batch.valid; ++row) {
    const int64_t digit = order[static_cast<size_t>(begin + row)];
    labels[row] = static_cast<unsigned char>(dataset.labels.elements[static_cast<size_t>(digit)]);
    for (int64_t i = 0; i < pixels; ++i) {
      const auto pixel = static_cast<unsigned char>(dataset.images.elements[static_cast<size_t>(digit * pixels + i)]);
      *image++ = (static_cast<float>(pixel) / 255.0f - kMean) / kDeviation;
    }
  }
  std::fill(image, batch.images.data<float>() + rows * pixels, 0.0f);
  std::fill(labels + batch.valid, labels + rows, 0);
}

}  // namespace pipeloom
