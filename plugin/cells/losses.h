#ifndef PLUGIN_CELLS_LOSSES_H_
#define PLUGIN_CELLS_LOSSES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "plugin/cells/cell.h"

// Loss cells with MindSpore's names and defaults.
namespace pipeloom {

// Of logits f32[n, c] and labels i32[n] or i64[n]; a label that is `ignore_index` counts for nothing. `reduction`:
// "mean", over the labels that count, or "sum". ops::SoftmaxCrossEntropy says over which labels the mean is.
class CrossEntropyLoss : public Cell {
 public:
  explicit CrossEntropyLoss(std::string reduction = "mean", int64_t ignore_index = -100)
      : reduction_(std::move(reduction)), ignore_index_(ignore_index) {}

 protected:
  Var Construct(Var logits, Var labels) override;

 private:
  std::string reduction_;
  int64_t ignore_index_;
};

// Mean or sum of the squared differences of two values of one type.
class MSELoss : public Cell {
 public:
  explicit MSELoss(std::string reduction = "mean") : reduction_(std::move(reduction)) {}

 protected:
  Var Construct(Var logits, Var labels) override;

 private:
  std::string reduction_;
};

// (data, label) -> loss_fn(backbone(data), label). The children are named _backbone and _loss_fn, and the names of
// parameters begin below them.
class WithLossCell : public Cell {
 public:
  WithLossCell(std::shared_ptr<Cell> backbone, std::shared_ptr<Cell> loss_fn);

 protected:
  Var Construct(Var data, Var label) override;

 private:
  Cell& backbone_;
  Cell& loss_fn_;
};

// Where WithLossCell has the network.
inline constexpr char kBackbone[] = "_backbone";

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_LOSSES_H_
