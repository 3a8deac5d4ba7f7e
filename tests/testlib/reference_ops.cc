#include "tests/testlib/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_split.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

using Tensors = std::vector<RefTensor>;
using Types = std::vector<TensorType>;
using Index = std::vector<int64_t>;
using Reference = std::function<Tensors(const Tensors&, const AttributeMap&, const Types&)>;

constexpr double kPi = 3.14159265358979323846;

RefTensor Zeros(const TensorType& type) { return {type, std::vector<double>(type.num_elements(), 0.0)}; }

int64_t Offset(const Shape& shape, const Index& index) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) offset = offset * shape[axis] + index[axis];
  return offset;
}

// Calls `visit` with each index of the shape, in row-major order.
void ForEach(const Shape& shape, const std::function<void(const Index&)>& visit) {
  Index index(shape.size(), 0);
  for (int64_t left = NumElements(shape); left > 0; --left) {
    visit(index);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

// The element that a tensor broadcast to the rank of `index` has there.
double BroadcastAt(const RefTensor& tensor, const Index& index) {
  const Shape& shape = tensor.type.shape;
  Index own(index.end() - static_cast<std::ptrdiff_t>(shape.size()), index.end());
  for (size_t axis = 0; axis < shape.size(); ++axis) own[axis] = shape[axis] == 1 ? 0 : own[axis];
  return tensor.values[Offset(shape, own)];
}

// The result's element at each index, as a function of the index.
Tensors Fill(const TensorType& type, const std::function<double(const Index&)>& element) {
  RefTensor result = Zeros(type);
  ForEach(type.shape, [&](const Index& index) { result.values[Offset(type.shape, index)] = element(index); });
  return {std::move(result)};
}

Reference Binary(double (*f)(double, double)) {
  return [f](const Tensors& in, const AttributeMap&, const Types& out) {
    return Fill(out[0], [&](const Index& index) { return f(BroadcastAt(in[0], index), BroadcastAt(in[1], index)); });
  };
}

Reference Unary(double (*f)(double)) {
  return [f](const Tensors& in, const AttributeMap&, const Types& out) {
    return Fill(out[0], [&](const Index& index) { return f(BroadcastAt(in[0], index)); });
  };
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double GeluErf(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double GeluErfGrad(double dy, double x) {
  return dy * (0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-x * x / 2) / std::sqrt(2 * kPi));
}
double GeluTanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x))); }
double GeluTanhGrad(double dy, double x) {
  const double t = std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x));
  return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / kPi) * (1 + 3 * 0.044715 * x * x));
}

Tensors Gelu(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  return Unary(GetBool(attributes, "approximate", true) ? GeluTanh : GeluErf)(in, attributes, out);
}
Tensors GeluGrad(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  return Binary(GetBool(attributes, "approximate", true) ? GeluTanhGrad : GeluErfGrad)(in, attributes, out);
}

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

// log(sum(exp(logits of the row))), shifted by the maximum.
double LogSumExp(const double* row, int64_t classes) {
  const double peak = *std::max_element(row, row + classes);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(row[c] - peak);
  return peak + std::log(sum);
}

Tensors CrossEntropy(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const int64_t classes = in[0].type.shape[1];
  const Labels labels = ReadLabels(in[1], classes, attributes);
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
  const Labels labels = ReadLabels(in[2], classes, attributes);
  return Fill(out[0], [&](const Index& index) {
    const int64_t label = labels.of_row[index[0]];
    if (label < 0) return 0.0;
    const double* logits = in[1].values.data() + index[0] * classes;
    const double softmax = std::exp(logits[index[1]] - LogSumExp(logits, classes));
    return in[0].values[0] * (softmax - (label == index[1] ? 1 : 0)) / labels.divisor;
  });
}

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

Tensors ReduceSum(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const std::vector<int64_t> axes = GetInts(attributes, "axes", {});
  const bool keep_dims = GetBool(attributes, "keep_dims", false);
  Tensors result = {Zeros(out[0])};
  ForEach(in[0].type.shape, [&](const Index& index) {
    Index kept;
    for (int64_t axis = 0; axis < static_cast<int64_t>(index.size()); ++axis) {
      const bool reduced = axes.empty() || std::find(axes.begin(), axes.end(), axis) != axes.end();
      if (!reduced || keep_dims) kept.push_back(reduced ? 0 : index[axis]);
    }
    result[0].values[Offset(out[0].shape, kept)] += in[0].values[Offset(in[0].type.shape, index)];
  });
  return result;
}

Tensors ReduceMean(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  Tensors result = ReduceSum(in, attributes, out);
  const double summed = static_cast<double>(in[0].values.size()) / static_cast<double>(result[0].values.size());
  for (double& value : result[0].values) value /= summed;
  return result;
}

Tensors BroadcastTo(const Tensors& in, const AttributeMap&, const Types& out) {
  return Fill(out[0], [&](const Index& index) { return BroadcastAt(in[0], index); });
}

Tensors SameElements(const Tensors& in, const AttributeMap&, const Types& out) { return {{out[0], in[0].values}}; }

Tensors Transpose(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const std::vector<int64_t> perm = GetInts(attributes, "perm", {});
  return Fill(out[0], [&](const Index& index) {
    Index source(index.size());
    for (size_t axis = 0; axis < index.size(); ++axis) source[perm[axis]] = index[axis];
    return in[0].values[Offset(in[0].type.shape, source)];
  });
}

Tensors Slice(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const std::vector<int64_t> begin = GetInts(attributes, "begin", {});
  return Fill(out[0], [&](const Index& index) {
    Index source = index;
    for (size_t axis = 0; axis < index.size(); ++axis) source[axis] += begin[axis];
    return in[0].values[Offset(in[0].type.shape, source)];
  });
}

Tensors Pad(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const std::vector<int64_t> before = GetInts(attributes, "before", {});
  Tensors result = {Zeros(out[0])};
  ForEach(in[0].type.shape, [&](const Index& index) {
    Index target = index;
    for (size_t axis = 0; axis < index.size(); ++axis) target[axis] += before[axis];
    result[0].values[Offset(out[0].shape, target)] = in[0].values[Offset(in[0].type.shape, index)];
  });
  return result;
}

Tensors ConcatAlong(const Tensors& in, size_t axis, const TensorType& type) {
  return Fill(type, [&](const Index& index) {
    Index source = index;
    size_t part = 0;
    while (source[axis] >= in[part].type.shape[axis]) source[axis] -= in[part++].type.shape[axis];
    return in[part].values[Offset(in[part].type.shape, source)];
  });
}

Tensors Concat(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  return ConcatAlong(in, static_cast<size_t>(GetInt(attributes, "axis", 0)), out[0]);
}

Tensors MicroBatchSlice(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const auto axis = static_cast<size_t>(GetInt(attributes, "axis", 0));
  Tensors micro_batches;
  for (int64_t m = 0; m < GetInt(attributes, "count", 1); ++m) {
    std::vector<int64_t> begin(out[0].shape.size(), 0);
    begin[axis] = m * out[0].shape[axis];
    micro_batches.push_back(Slice(in, {{"begin", begin}}, out)[0]);
  }
  return micro_batches;
}

Tensors Accumulate(const Tensors& in, const AttributeMap&, const Types& out) {
  Tensors sum = {Zeros(out[0])};
  for (const RefTensor& addend : in) {
    for (size_t i = 0; i < addend.values.size(); ++i) sum[0].values[i] += addend.values[i];
  }
  return sum;
}

Tensors MicroBatchMerge(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  return GetString(attributes, "reduce", "") == "sum" ? Accumulate(in, attributes, out) : ConcatAlong(in, 0, out[0]);
}

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

const std::map<std::string, Reference, std::less<>>& References() {
  static const auto& references = *new std::map<std::string, Reference, std::less<>>{
      {"matmul", Matmul},
      {"add", Binary([](double a, double b) { return a + b; })},
      {"sub", Binary([](double a, double b) { return a - b; })},
      {"mul", Binary([](double a, double b) { return a * b; })},
      {"div", Binary([](double a, double b) { return a / b; })},
      {"neg", Unary([](double x) { return -x; })},
      {"relu", Unary([](double x) { return std::max(x, 0.0); })},
      {"relu_grad", Binary([](double dy, double y) { return y > 0 ? dy : 0.0; })},
      {"tanh", Unary([](double x) { return std::tanh(x); })},
      {"tanh_grad", Binary([](double dy, double y) { return dy * (1 - y * y); })},
      {"sigmoid", Unary(Sigmoid)},
      {"sigmoid_grad", Binary([](double dy, double y) { return dy * y * (1 - y); })},
      {"gelu", Gelu},
      {"gelu_grad", GeluGrad},
      {"softmax_cross_entropy", CrossEntropy},
      {"softmax_cross_entropy_grad", CrossEntropyGrad},
      {"softmax", Softmax},
      {"softmax_grad", SoftmaxGrad},
      {"log_softmax", LogSoftmax},
      {"log_softmax_grad", LogSoftmaxGrad},
      {"layer_norm", LayerNorm},
      {"layer_norm_grad_x", LayerNormGradX},
      {"layer_norm_grad_gamma", LayerNormGradGamma},
      {"mse", Mse},
      {"mse_grad", MseGrad},
      {"reduce_sum", ReduceSum},
      {"reduce_mean", ReduceMean},
      {"broadcast_to", BroadcastTo},
      {"reshape", SameElements},
      {"transpose", Transpose},
      {"slice", Slice},
      {"pad", Pad},
      {"concat", Concat},
      {"copy", SameElements},
      {"micro_batch_slice", MicroBatchSlice},
      {"micro_batch_merge", MicroBatchMerge},
      {"grad_accumulate", Accumulate},
      {"sgd", Sgd},
      {"adam", Adam},
      {"adamw", AdamW},
  };
  return references;
}

}  // namespace

bool HasReference(absl::string_view op) { return References().count(op) != 0; }

std::vector<RefTensor> RunReference(absl::string_view op, const std::vector<RefTensor>& inputs,
                                    const AttributeMap& attributes, const std::vector<TensorType>& results) {
  const auto reference = References().find(op);
  PIPELOOM_CHECK(reference != References().end(), "op ", op, " has no reference");
  return reference->second(inputs, attributes, results);
}

}  // namespace pipeloom
