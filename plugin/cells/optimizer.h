#ifndef PLUGIN_CELLS_OPTIMIZER_H_
#define PLUGIN_CELLS_OPTIMIZER_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "passes/ir/graph.h"
#include "plugin/cells/parameter.h"

namespace pipeloom {

// Which parameters are trained, and the op that updates each of them at the end of a step (op table: what it computes).
class Optimizer {
 public:
  const std::vector<ParameterPtr>& parameters() const { return parameters_; }
  const UpdateRule& rule() const { return rule_; }
  // InvalidArgument for a setting that is out of range, or no parameters.
  absl::Status Validate() const;

 protected:
  Optimizer(std::vector<ParameterPtr> parameters, UpdateRule rule)
      : parameters_(std::move(parameters)), rule_(std::move(rule)) {}

 private:
  std::vector<ParameterPtr> parameters_;
  UpdateRule rule_;
};

// The defaults of SGD and Adam are MindSpore's.
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<ParameterPtr> parameters, double learning_rate = 0.1, double momentum = 0.0,
               double weight_decay = 0.0, bool nesterov = false);
};

class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<ParameterPtr> parameters, double learning_rate = 1e-3, double beta1 = 0.9,
                double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0.0);
};

// Loshchilov and Hutter's Adam with the weight decay beside the gradient, at step t = 1, 2, ...:
//   m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2
//   w <- (1 - lr weight_decay) w - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
// Formula and defaults are those of PyTorch's AdamW. MindSpore's AdamWeightDecay decays alike, but leaves out the two
// corrections 1 - beta^t.
class AdamW : public Optimizer {
 public:
  explicit AdamW(std::vector<ParameterPtr> parameters, double learning_rate = 1e-3, double beta1 = 0.9,
                 double beta2 = 0.999, double eps = 1e-8, double weight_decay = 1e-2);
};

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_OPTIMIZER_H_
