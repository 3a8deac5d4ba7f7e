#include <cmath>

#include "tests/testlib/reference_family.h"

namespace pipeloom::reference {
namespace {

// The row of `index` along the last axis.
const double* RowOf(const RefTensor& tensor, Index index) {
  index.back() = 0;
  return tensor.values.data() + Offset(tensor.type.shape, index);
}

Tensors LogSoftmax(const Tensors& in, const AttributeMap&, const Types& out) {
  const int64_t n = out[0].shape.back();
  return Fill(out[0], [&](const Index& index) {
    const double* row = RowOf(in[0], index);
    return row[index.back()] - LogSumExp(row, n);
  });
}

Tensors Softmax(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  Tensors result = LogSoftmax(in, attributes, out);
  for (double& value : result[0].values) value = std::exp(value);
  return result;
}

// The sum over j of dy_j times the derivative of y_j by x_i, which `derivative` gives from y, j and i.
Tensors ThroughRows(const Tensors& in, const Types& out, double (*derivative)(const double*, int64_t, int64_t)) {
  return Fill(out[0], [&](const Index& index) {
    const double* dy = RowOf(in[0], index);
    const double* y = RowOf(in[1], index);
    double sum = 0;
    for (int64_t j = 0; j < out[0].shape.back(); ++j) sum += dy[j] * derivative(y, j, index.back());
    return sum;
  });
}

Tensors SoftmaxGrad(const Tensors& in, const AttributeMap&, const Types& out) {
  return ThroughRows(in, out, [](const double* y, int64_t j, int64_t i) { return y[j] * ((i == j ? 1 : 0) - y[i]); });
}

Tensors LogSoftmaxGrad(const Tensors& in, const AttributeMap&, const Types& out) {
  return ThroughRows(in, out, [](const double* y, int64_t j, int64_t i) { return (i == j ? 1 : 0) - std::exp(y[i]); });
}

// A row less its mean, over the root of its variance and eps.
struct NormalizedRow {
  NormalizedRow(const double* row, int64_t n, const AttributeMap& attributes) {
    double mean = 0;
    for (int64_t i = 0; i < n; ++i) mean += row[i] / static_cast<double>(n);
    double variance = 0;
    for (int64_t i = 0; i < n; ++i) variance += std::pow(row[i] - mean, 2) / static_cast<double>(n);
    deviation = std::sqrt(variance + GetDouble(attributes, "eps", 1e-5));
    for (int64_t i = 0; i < n; ++i) values.push_back((row[i] - mean) / deviation);
  }

  double deviation = 0;
  std::vector<double> values;
};

// Calls `visit` with each row's place and its normalized values.
void ForEachRow(const RefTensor& x, const AttributeMap& attributes,
                const std::function<void(int64_t, const NormalizedRow&)>& visit) {
  const int64_t n = x.type.shape.back();
  for (int64_t at = 0; at < x.type.num_elements(); at += n) visit(at, {x.values.data() + at, n, attributes});
}

Tensors LayerNorm(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  RefTensor y = Zeros(out[0]);
  ForEachRow(in[0], attributes, [&](int64_t at, const NormalizedRow& row) {
    for (size_t i = 0; i < row.values.size(); ++i) {
      y.values[at + i] = row.values[i] * in[1].values[i] + in[2].values[i];
    }
  });
  return {y};
}

// By the Jacobian: h_j by x_i is (1 if i = j, less 1/n, less h_i h_j / n) over the deviation.
Tensors LayerNormGradX(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  RefTensor dx = Zeros(out[0]);
  ForEachRow(in[1], attributes, [&](int64_t at, const NormalizedRow& row) {
    const size_t n = row.values.size();
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        const double by_x = ((i == j ? 1.0 : 0.0) - (1 + row.values[i] * row.values[j]) / static_cast<double>(n));
        dx.values[at + i] += in[0].values[at + j] * in[2].values[j] * by_x / row.deviation;
      }
    }
  });
  return {dx};
}

Tensors LayerNormGradGamma(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  RefTensor dgamma = Zeros(out[0]);
  ForEachRow(in[1], attributes, [&](int64_t at, const NormalizedRow& row) {
    for (size_t i = 0; i < row.values.size(); ++i) dgamma.values[i] += in[0].values[at + i] * row.values[i];
  });
  return {dgamma};
}

}  // namespace

References NormalizationReferences() {
  return {
      {"softmax", Softmax},
      {"softmax_grad", SoftmaxGrad},
      {"log_softmax", LogSoftmax},
      {"log_softmax_grad", LogSoftmaxGrad},
      {"layer_norm", LayerNorm},
      {"layer_norm_grad_x", LayerNormGradX},
      {"layer_norm_grad_gamma", LayerNormGradGamma},
  };
}

}  // namespace pipeloom::reference
