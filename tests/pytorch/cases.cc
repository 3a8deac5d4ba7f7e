#include "tests/pytorch/cases.h"

#include "plugin/cells/layers.h"
#include "plugin/cells/losses.h"
#include "plugin/cells/ops.h"
#include "samples/mnist_network.h"

namespace pipeloom {
namespace {

// Both formulas of GELU, tanh and a plain layer.
std::shared_ptr<Cell> Activations() {
  auto network = std::make_shared<SequentialCell>();
  network->Append<Flatten>();
  network->Append<Dense>(784, 64);
  network->Append<GELU>(/*approximate=*/true);
  network->Append<Dense>(64, 48);
  network->Append<Tanh>();
  network->Append<Dense>(48, 32);
  network->Append<GELU>(/*approximate=*/false);
  network->Append<Dense>(32, 10);
  return network;
}

// Normalizations and both softmaxes.
std::shared_ptr<Cell> Normalizations() {
  auto network = std::make_shared<SequentialCell>();
  network->Append<Flatten>();
  network->Append<Dense>(784, 64);
  network->Append<LayerNorm>(Shape{64}, /*epsilon=*/1e-5);
  network->Append<Softmax>();
  network->Append<LayerNorm>(Shape{64}, /*epsilon=*/1e-3);
  network->Append<Dense>(64, 10);
  network->Append<LogSoftmax>(/*axis=*/1);
  return network;
}

// Back from what a Dense made, by the same weight: f32[..., out] -> f32[..., in].
class Backwards : public Cell {
 public:
  explicit Backwards(const Dense& dense) : weight_(AddParameter("weight", dense.weight->shape(), Zeros())) {
    weight_ = dense.weight;
  }
  Var Construct(Var x) override { return ops::MatMul(x, weight_); }

 private:
  ParameterPtr& weight_;
};

// Digits through 64 numbers and back, with one weight in the first and the last layer.
class TiedAutoencoder : public Cell {
 public:
  TiedAutoencoder()
      : flatten_(AddCell<Flatten>("flatten")),
        first_(AddCell<Dense>("first", 784, 64)),
        tanh_(AddCell<Tanh>("tanh")),
        middle_(AddCell<Dense>("middle", 64, 64)),
        last_(AddCell<Backwards>("last", first_)) {}
  Var Construct(Var x) override { return last_(middle_(tanh_(first_(flatten_(x))))); }

 private:
  Flatten& flatten_;
  Dense& first_;
  Tanh& tanh_;
  Dense& middle_;
  Backwards& last_;
};

template <typename T>
std::shared_ptr<Cell> Seeded(std::shared_ptr<T> network, uint64_t seed) {
  network->SetSeed(seed);
  return network;
}

}  // namespace

std::vector<Case> PytorchCases() {
  const std::shared_ptr<Cell> sgd = Seeded(std::make_shared<Network>(), 1);
  const std::shared_ptr<Cell> momentum = Seeded(std::make_shared<Network>(), 2);
  const std::shared_ptr<Cell> adam = Seeded(std::make_shared<Network>(), 3);
  const std::shared_ptr<Cell> adam_default = Seeded(std::make_shared<Network>(), 3);
  const std::shared_ptr<Cell> adamw = Seeded(std::make_shared<Network>(), 7);
  const std::shared_ptr<Cell> activations = Seeded(Activations(), 4);
  const std::shared_ptr<Cell> normalizations = Seeded(Normalizations(), 8);
  const std::shared_ptr<Cell> tied = Seeded(std::make_shared<TiedAutoencoder>(), 5);
  const std::shared_ptr<Cell> ignore = Seeded(std::make_shared<Network>(), 6);
  const auto cross_entropy = [] { return std::make_shared<CrossEntropyLoss>(); };
  return {
      {"sgd", sgd, cross_entropy(), Targets::kLabels, SGD(sgd->TrainableParams(), 1e-2), 2, "1f1b", 4, "sum"},
      {"momentum", momentum, cross_entropy(), Targets::kLabels,
       SGD(momentum->TrainableParams(), 1e-2, /*momentum=*/0.9, /*weight_decay=*/1e-4, /*nesterov=*/true), 3, "gpipe",
       4, "mean"},
      {"adam", adam, cross_entropy(), Targets::kLabels,
       Adam(adam->TrainableParams(), 1e-3, 0.9, 0.999, /*eps=*/1e-4, /*weight_decay=*/1e-2), 2, "1f1b", 2, "mean"},
      {"adam_default", adam_default, cross_entropy(), Targets::kLabels, Adam(adam_default->TrainableParams(), 1e-3), 2,
       "1f1b", 2, "mean"},
      {"adamw", adamw, cross_entropy(), Targets::kLabels,
       AdamW(adamw->TrainableParams(), 1e-3, 0.9, 0.999, /*eps=*/1e-4, /*weight_decay=*/0.5), 2, "1f1b", 2, "mean"},
      {"activations", activations, std::make_shared<MSELoss>(), Targets::kOneHot,
       SGD(activations->TrainableParams(), 1e-1), 2, "1f1b", 4, "mean"},
      {"normalizations", normalizations, std::make_shared<MSELoss>(), Targets::kOneHot,
       SGD(normalizations->TrainableParams(), 1e-1), 2, "1f1b", 4, "mean"},
      {"tied", tied, std::make_shared<MSELoss>(), Targets::kPixels, SGD(tied->TrainableParams(), 1e-1), 3, "1f1b", 4,
       "sum"},
      {"ignored_labels", ignore, std::make_shared<CrossEntropyLoss>("mean", /*ignore_index=*/7), Targets::kLabels,
       SGD(ignore->TrainableParams(), 1e-2), 2, "1f1b", 4, "sum"},
  };
}

}  // namespace pipeloom
