#include <algorithm>
#include <cmath>

#include "kernels/base/status_macros.h"
#include "tests/testlib/reference_family.h"

namespace pipeloom::reference {

double LogSumExp(const double* row, int64_t count) {
  const double peak = *std::max_element(row, row + count);
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += std::exp(row[c] - peak);
  return peak + std::log(sum);
}

namespace {

struct Labels {
  std::vector<int64_t> of_row;  // -1: ignored
  double divisor = 1;           // of the loss, as the reduction says
};

Labels ReadLabels(const RefTensor& labels, int64_t classes, const AttributeMap& attributes) {
  const int64_t ignored = GetInt(attributes, "ignore_index", -100);
  Labels read;
  double counted = 0;
  for (double value : labels.values) {
    const auto label = static_cast<int64_t>(value);
    PIPELOOM_CHECK(label == ignored || (label >= 0 && label < classes), "label ", label, " of ", classes, " classes");
    read.of_row.push_back(label == ignored ? -1 : label);
    counted += label == ignored ? 0 : 1;
  }
  // Where every label is ignored, the mean is of nothing: 0, not NaN.
  if (GetString(attributes, "reduction", "mean") == "mean") read.divisor = std::max(counted, 1.0);
  return read;
}

Tensors CrossEntropy(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const int64_t classes = in[0].type.shape[1];
  Labels labels = ReadLabels(in[1], classes, attributes);
  if (in.size() > 2) labels.divisor = in[2].values[0];
  double loss = 0;
  for (size_t row = 0; row < labels.of_row.size(); ++row) {
    if (labels.of_row[row] < 0) continue;
    const double* logits = in[0].values.data() + static_cast<int64_t>(row) * classes;
    loss += LogSumExp(logits, classes) - logits[labels.of_row[row]];
  }
  return {{out[0], {loss / labels.divisor}}};
}

Tensors CrossEntropyGrad(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const int64_t classes = in[1].type.shape[1];
  Labels labels = ReadLabels(in[2], classes, attributes);
  if (in.size() > 3) labels.divisor = in[3].values[0];
  return Fill(out[0], [&](const Index& index) {
    const int64_t label = labels.of_row[index[0]];
    if (label < 0) return 0.0;
    const double* logits = in[1].values.data() + index[0] * classes;
    const double softmax = std::exp(logits[index[1]] - LogSumExp(logits, classes));
    return in[0].values[0] * (softmax - (label == index[1] ? 1 : 0)) / labels.divisor;
  });
}

Tensors LabelsPerMicroBatch(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  double counted = 0;
  for (double label : in[0].values)
    counted += label == static_cast<double>(GetInt(attributes, "ignore_index", -100)) ? 0 : 1;
  return {{out[0], {counted == 0 ? 1 : counted / static_cast<double>(GetInt(attributes, "count", 1))}}};
}

double MseDivisor(const RefTensor& x, const AttributeMap& attributes) {
  return GetString(attributes, "reduction", "mean") == "mean" ? static_cast<double>(x.values.size()) : 1.0;
}

Tensors Mse(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  double sum = 0;
  for (size_t i = 0; i < in[0].values.size(); ++i) sum += std::pow(in[0].values[i] - in[1].values[i], 2);
  return {{out[0], {sum / MseDivisor(in[0], attributes)}}};
}

Tensors MseGrad(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  return Fill(out[0], [&](const Index& index) {
    const double difference = BroadcastAt(in[1], index) - BroadcastAt(in[2], index);
    return in[0].values[0] * 2 * difference / MseDivisor(in[1], attributes);
  });
}

}  // namespace

References LossReferences() {
  return {
      {"softmax_cross_entropy", CrossEntropy},
      {"softmax_cross_entropy_grad", CrossEntropyGrad},
      {"labels_per_micro_batch", LabelsPerMicroBatch},
      {"mse", Mse},
      {"mse_grad", MseGrad},
  };
}

}  // namespace pipeloom::reference
