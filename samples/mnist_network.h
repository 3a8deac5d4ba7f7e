#ifndef SAMPLES_MNIST_NETWORK_H_
#define SAMPLES_MNIST_NETWORK_H_

#include <cmath>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "plugin/cells/layers.h"
#include "plugin/cells/losses.h"
#include "plugin/cells/ops.h"
#include "plugin/cells/pipeline.h"

namespace pipeloom {

inline constexpr int kClasses = 10;

// A cell of one's own: parameters in the constructor, ops in Construct.
class MatMulCell : public Cell {
 public:
  explicit MatMulCell(bool prints)
      : prints_(prints), param_(AddParameter("param", {784, 512}, HeUniform(std::sqrt(5.0)))) {}
  Var Construct(Var x) override {
    x = ops::MatMul(x, param_);
    return prints_ ? ops::Print("out is:", x) : x;
  }

 private:
  const bool prints_;
  ParameterPtr& param_;
};

// Digits of 28 x 28 pixels -> how likely each of the ten labels is.
class Network : public Cell {
 public:
  // `print_activations`: layer1 prints its product, once a micro-batch.
  explicit Network(bool print_activations = false)
      : flatten_(AddCell<Flatten>("flatten")),
        layer1_(AddCell<MatMulCell>("layer1", print_activations)),
        relu1_(AddCell<ReLU>("relu1")),
        layer2_(AddCell<Dense>("layer2", 512, 512)),
        relu2_(AddCell<ReLU>("relu2")),
        layer3_(AddCell<Dense>("layer3", 512, kClasses)) {}

  Var Construct(Var x) override {
    x = flatten_(x);
    x = relu1_(layer1_(x));
    x = relu2_(layer2_(x));
    return layer3_(x);
  }

 private:
  Flatten& flatten_;
  MatMulCell& layer1_;
  ReLU& relu1_;
  Dense& layer2_;
  ReLU& relu2_;
  Dense& layer3_;
};

// The cells of `network` in order over the stages, about equally many on each: flatten, layer1, relu1 | layer2, relu2,
// layer3 for two. Paths begin at the WithLossCell that the network stands in.
inline absl::StatusOr<StageConfig> SpreadOverStages(const Cell& network, int stages) {
  const int cells = static_cast<int>(network.children().size());
  if (stages < 1 || stages > cells) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stages=", stages, ": the network has ", cells, " cells; give 1 to ", cells));
  }
  StageConfig config;
  for (int i = 0; i < cells; ++i) {
    config.emplace_back(absl::StrCat(kBackbone, ".", network.children()[static_cast<size_t>(i)].name),
                        i * stages / cells);
  }
  return config;
}

}  // namespace pipeloom

#endif  // SAMPLES_MNIST_NETWORK_H_
