#include "plugin/cells/optimizer.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"

namespace pipeloom {
namespace {

struct Range {
  absl::string_view attribute;
  double low;
  double high;
  bool below_high;  // `high` itself is out
};

constexpr Range kRanges[] = {
    {"lr", 0.0, std::numeric_limits<double>::max(), false},
    {"momentum", 0.0, 1.0, true},
    {"weight_decay", 0.0, std::numeric_limits<double>::max(), false},
    {"beta1", 0.0, 1.0, true},
    {"beta2", 0.0, 1.0, true},
    {"eps", std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max(), false},
};

AttributeMap SgdAttributes(double learning_rate, double momentum, double weight_decay, bool nesterov) {
  AttributeMap attributes{{"lr", learning_rate}};
  if (momentum != 0.0) attributes["momentum"] = momentum;
  if (weight_decay != 0.0) attributes["weight_decay"] = weight_decay;
  if (nesterov) attributes["nesterov"] = true;
  return attributes;
}

AttributeMap AdamAttributes(double learning_rate, double beta1, double beta2, double eps, double weight_decay) {
  return {{"lr", learning_rate}, {"beta1", beta1}, {"beta2", beta2}, {"eps", eps}, {"weight_decay", weight_decay}};
}

}  // namespace

absl::Status Optimizer::Validate() const {
  if (parameters_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        rule_.op, " has no parameters to train; give it TrainableParams() of a network that requires gradients"));
  }
  for (const Range& range : kRanges) {
    auto it = rule_.attributes.find(range.attribute);
    if (it == rule_.attributes.end()) continue;
    const double value = std::get<double>(it->second);
    if (value >= range.low && (range.below_high ? value < range.high : value <= range.high)) continue;
    const std::string choices =
        range.below_high ? absl::StrCat("give one in [", range.low, ", ", range.high, ")")
                         : absl::StrCat("give a finite one ", range.low == 0.0 ? "of at least 0" : "above 0");
    return absl::InvalidArgumentError(absl::StrCat(rule_.op, ": ", range.attribute, " is ", value, "; ", choices));
  }
  if (GetBool(rule_.attributes, "nesterov", false) && GetDouble(rule_.attributes, "momentum", 0.0) == 0.0) {
    return absl::InvalidArgumentError(
        absl::StrCat(rule_.op, ": nesterov is on and momentum is 0; give a momentum above 0 or leave nesterov out"));
  }
  return absl::OkStatus();
}

SGD::SGD(std::vector<ParameterPtr> parameters, double learning_rate, double momentum, double weight_decay,
         bool nesterov)
    : Optimizer(std::move(parameters), {"sgd", SgdAttributes(learning_rate, momentum, weight_decay, nesterov)}) {}

Adam::Adam(std::vector<ParameterPtr> parameters, double learning_rate, double beta1, double beta2, double eps,
           double weight_decay)
    : Optimizer(std::move(parameters), {"adam", AdamAttributes(learning_rate, beta1, beta2, eps, weight_decay)}) {}

AdamW::AdamW(std::vector<ParameterPtr> parameters, double learning_rate, double beta1, double beta2, double eps,
             double weight_decay)
    : Optimizer(std::move(parameters), {"adamw", AdamAttributes(learning_rate, beta1, beta2, eps, weight_decay)}) {}

}  // namespace pipeloom
