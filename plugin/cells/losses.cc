#include "plugin/cells/losses.h"

#include "plugin/cells/ops.h"

namespace pipeloom {

Var CrossEntropyLoss::Construct(Var logits, Var labels) {
  return ops::SoftmaxCrossEntropy(logits, labels, reduction_, ignore_index_);
}

Var MSELoss::Construct(Var logits, Var labels) { return ops::Mse(logits, labels, reduction_); }

WithLossCell::WithLossCell(std::shared_ptr<Cell> backbone, std::shared_ptr<Cell> loss_fn)
    : Cell(/*auto_prefix=*/false),
      backbone_(AddCell(kBackbone, std::move(backbone))),
      loss_fn_(AddCell("_loss_fn", std::move(loss_fn))) {}

Var WithLossCell::Construct(Var data, Var label) { return loss_fn_(backbone_(data), label); }

}  // namespace pipeloom
