#include <cmath>

#include "tests/testlib/reference_family.h"

namespace pipeloom::reference {
namespace {

Tensors Sgd(const Tensors& in, const AttributeMap& attributes, const Types&) {
  const double momentum = GetDouble(attributes, "momentum", 0.0);
  Tensors written = {in[0]};
  if (momentum != 0) written.push_back(in[2]);
  for (size_t i = 0; i < in[0].values.size(); ++i) {
    double& w = written[0].values[i];
    double step = in[1].values[i] + GetDouble(attributes, "weight_decay", 0.0) * w;
    if (momentum != 0) {
      double& accum = written[1].values[i];
      accum = momentum * accum + step;
      step = GetBool(attributes, "nesterov", false) ? step + momentum * accum : accum;
    }
    w -= GetDouble(attributes, "lr", 0.0) * step;
  }
  return written;
}

Tensors Adam(const Tensors& in, const AttributeMap& attributes, const Types&) {
  const double beta1 = GetDouble(attributes, "beta1", 0.9);
  const double beta2 = GetDouble(attributes, "beta2", 0.999);
  Tensors written = {in[0], in[2], in[3], in[4]};
  const double t = written[3].values[0] += 1;
  for (size_t i = 0; i < in[0].values.size(); ++i) {
    double& w = written[0].values[i];
    double& m = written[1].values[i];
    double& v = written[2].values[i];
    const double g = in[1].values[i] + GetDouble(attributes, "weight_decay", 0.0) * w;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double corrected_m = m / (1 - std::pow(beta1, t));
    const double corrected_v = v / (1 - std::pow(beta2, t));
    w -= GetDouble(attributes, "lr", 0.0) * corrected_m / (std::sqrt(corrected_v) + GetDouble(attributes, "eps", 1e-8));
  }
  return written;
}

// The decay takes its share of the weight; moments see the gradient alone.
Tensors AdamW(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  AttributeMap without_decay = attributes;
  without_decay["weight_decay"] = 0.0;
  Tensors written = Adam(in, without_decay, out);
  const double decay = GetDouble(attributes, "lr", 0.0) * GetDouble(attributes, "weight_decay", 0.0);
  for (size_t i = 0; i < in[0].values.size(); ++i) written[0].values[i] -= decay * in[0].values[i];
  return written;
}

}  // namespace

References UpdateReferences() {
  return {
      {"sgd", Sgd},
      {"adam", Adam},
      {"adamw", AdamW},
  };
}

}  // namespace pipeloom::reference
