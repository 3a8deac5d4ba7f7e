#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_split.h"
#include "kernels/base/status_macros.h"
#include "tests/testlib/reference_family.h"

namespace pipeloom::reference {
namespace {

double EpilogueStep(absl::string_view step, double x, const Tensors& in, const Index& index) {
  if (step == "bias") return x + BroadcastAt(in[2], index);
  if (step == "residual") return x + BroadcastAt(in.back(), index);
  if (step == "relu") return std::max(x, 0.0);
  if (step == "gelu_tanh") return GeluTanh(x);
  if (step == "gelu_erf") return GeluErf(x);
  if (step == "tanh") return std::tanh(x);
  PIPELOOM_CHECK(step == "sigmoid", "epilogue step ", step);
  return Sigmoid(x);
}

Tensors Matmul(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const bool transpose_a = GetBool(attributes, "transpose_a", false);
  const bool transpose_b = GetBool(attributes, "transpose_b", false);
  const Shape& a = in[0].type.shape;
  const Shape& b = in[1].type.shape;
  const std::vector<std::string> steps = absl::StrSplit(GetString(attributes, "epilogue", ""), '+', absl::SkipEmpty());
  return Fill(out[0], [&](const Index& index) {
    double sum = 0;
    for (int64_t k = 0; k < a[transpose_a ? 0 : 1]; ++k) {
      const double left = in[0].values[transpose_a ? k * a[1] + index[0] : index[0] * a[1] + k];
      const double right = in[1].values[transpose_b ? index[1] * b[1] + k : k * b[1] + index[1]];
      sum += left * right;
    }
    for (const std::string& step : steps) sum = EpilogueStep(step, sum, in, index);
    return sum;
  });
}

Tensors BatchMatmul(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const bool transpose_a = GetBool(attributes, "transpose_a", false);
  const bool transpose_b = GetBool(attributes, "transpose_b", false);
  const auto at = [](const RefTensor& tensor, Index index, int64_t row, int64_t column) {
    index.end()[-2] = row;
    index.end()[-1] = column;
    return tensor.values[Offset(tensor.type.shape, index)];
  };
  return Fill(out[0], [&](const Index& index) {
    const int64_t row = index.end()[-2];
    const int64_t column = index.end()[-1];
    double sum = 0;
    for (int64_t k = 0; k < in[0].type.shape.end()[transpose_a ? -2 : -1]; ++k) {
      sum += (transpose_a ? at(in[0], index, k, row) : at(in[0], index, row, k)) *
             (transpose_b ? at(in[1], index, column, k) : at(in[1], index, k, column));
    }
    return sum;
  });
}

}  // namespace

References MatmulReferences() {
  return {
      {"matmul", Matmul},
      {"batch_matmul", BatchMatmul},
  };
}

}  // namespace pipeloom::reference
