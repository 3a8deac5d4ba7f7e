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

double Factor(const Tensors& in, size_t operand) { return in[operand].values[0]; }

Tensors ApplySgd(const Tensors& in, const AttributeMap& attributes, const Types&) {
  const double momentum = Factor(in, 5);
  Tensors written = {in[0], in[2], in[3]};
  for (size_t i = 0; i < in[0].values.size(); ++i) {
    double& w = written[0].values[i];
    double& accum = written[1].values[i];
    double& fresh = written[2].values[i];
    double step = in[1].values[i] + GetDouble(attributes, "weight_decay", 0.0) * w;
    if (momentum > 0) {
      accum = fresh > 0 ? step : momentum * accum + (1 - GetDouble(attributes, "dampening", 0.0)) * step;
      fresh = 0;
      step = GetBool(attributes, "nesterov", false) ? step + momentum * accum : accum;
    }
    w -= Factor(in, 4) * step;
  }
  return written;
}

Tensors ApplyMomentum(const Tensors& in, const AttributeMap&, const Types&) {
  Tensors written = {in[0], in[2]};
  for (size_t i = 0; i < in[0].values.size(); ++i) {
    double& accum = written[1].values[i];
    accum = Factor(in, 4) * accum + in[1].values[i];
    written[0].values[i] -= Factor(in, 3) * accum;
  }
  return written;
}

// The moments after the gradient, which stand in written[1] and [2].
void MoveMoments(const Tensors& in, double beta1, double beta2, Tensors& written) {
  for (size_t i = 0; i < in[0].values.size(); ++i) {
    const double g = in[1].values[i];
    written[1].values[i] = beta1 * in[2].values[i] + (1 - beta1) * g;
    written[2].values[i] = beta2 * in[3].values[i] + (1 - beta2) * g * g;
  }
}

// (w, g, m, v, beta1 power, beta2 power, lr, beta1, beta2, eps)
Tensors ApplyAdam(const Tensors& in, const AttributeMap& attributes, const Types&) {
  const double beta1 = Factor(in, 7);
  const double step_size = Factor(in, 6) * std::sqrt(1 - Factor(in, 5)) / (1 - Factor(in, 4));
  Tensors written = {in[0], in[2], in[3]};
  MoveMoments(in, beta1, Factor(in, 8), written);
  for (size_t i = 0; i < in[0].values.size(); ++i) {
    const double m = written[1].values[i];
    const bool nesterov = GetBool(attributes, "nesterov", false);
    const double ahead = nesterov ? beta1 * m + (1 - beta1) * in[1].values[i] : m;
    written[0].values[i] -= step_size * ahead / (std::sqrt(written[2].values[i]) + Factor(in, 9));
  }
  return written;
}

// (w, g, m, v, lr, beta1, beta2, eps, weight decay)
Tensors ApplyAdamW(const Tensors& in, const AttributeMap&, const Types&) {
  Tensors written = {in[0], in[2], in[3]};
  MoveMoments(in, Factor(in, 5), Factor(in, 6), written);
  for (size_t i = 0; i < in[0].values.size(); ++i) {
    double& w = written[0].values[i];
    const double step = written[1].values[i] / (std::sqrt(written[2].values[i]) + Factor(in, 7));
    w -= Factor(in, 4) * (step + Factor(in, 8) * w);
  }
  return written;
}

Tensors Assign(const Tensors& in, const AttributeMap&, const Types&) { return {in[1]}; }

Tensors AssignAdd(const Tensors& in, const AttributeMap&, const Types&) {
  Tensors written = {in[0]};
  for (size_t i = 0; i < in[1].values.size(); ++i) written[0].values[i] += in[1].values[i];
  return written;
}

}  // namespace

References UpdateReferences() {
  return {
      {"sgd", Sgd},
      {"adam", Adam},
      {"adamw", AdamW},
      {"apply_sgd", ApplySgd},
      {"apply_momentum", ApplyMomentum},
      {"apply_adam", ApplyAdam},
      {"apply_adamw", ApplyAdamW},
      {"assign", Assign},
      {"assign_add", AssignAdd},
  };
}

}  // namespace pipeloom::reference
