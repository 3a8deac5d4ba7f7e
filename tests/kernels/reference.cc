#include "tests/kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "absl/strings/str_split.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

using Operands = std::vector<ReferenceTensor>;
using Index = std::vector<int64_t>;
using ReferenceFunction = std::function<void(const KernelSpec&, Operands&)>;

// Calls f(index) for every index of `shape`, row-major.
void ForEachIndex(const Shape& shape, const std::function<void(const Index&)>& f) {
  Index index(shape.size(), 0);
  for (int64_t flat = 0; flat < NumElements(shape); ++flat) {
    int64_t rest = flat;
    for (size_t i = shape.size(); i-- > 0;) {
      index[i] = rest % shape[i];
      rest /= shape[i];
    }
    f(index);
  }
}

// The element at `index`, whose trailing axes are those of the tensor; axes of extent 1 are broadcast.
double& At(ReferenceTensor& tensor, const Index& index) {
  const Shape& shape = tensor.type.shape;
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t place = index[index.size() - shape.size() + i];
    flat = flat * shape[i] + (shape[i] == 1 ? 0 : place);
  }
  return tensor.values[static_cast<size_t>(flat)];
}

double GeluTanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double GeluErf(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Relu(double x) { return x < 0 ? 0 : x; }

double GeluTanhGrad(double x) {
  const double c = std::sqrt(2 / M_PI);
  const double t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}
double GeluErfGrad(double x) {
  return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}

bool Approximate(const KernelSpec& spec) { return GetBool(spec.attributes, "approximate", true); }
bool Mean(const KernelSpec& spec) { return GetString(spec.attributes, "reduction", "mean") == "mean"; }

void Matmul(const KernelSpec& spec, Operands& operands) {
  const bool transpose_a = GetBool(spec.attributes, "transpose_a", false);
  const bool transpose_b = GetBool(spec.attributes, "transpose_b", false);
  ReferenceTensor& out = operands.back();
  const int64_t terms = spec.inputs[0].shape[transpose_a ? 0 : 1];
  const std::vector<std::string> steps =
      absl::StrSplit(GetString(spec.attributes, "epilogue", ""), '+', absl::SkipEmpty());
  ForEachIndex(out.type.shape, [&](const Index& ij) {
    double sum = 0;
    for (int64_t p = 0; p < terms; ++p) {
      sum += At(operands[0], transpose_a ? Index{p, ij[0]} : Index{ij[0], p}) *
             At(operands[1], transpose_b ? Index{ij[1], p} : Index{p, ij[1]});
    }
    size_t next = 2;
    for (const std::string& step : steps) {
      if (step == "bias" || step == "residual") sum += At(operands[next++], ij);
      if (step == "relu") sum = Relu(sum);
      if (step == "gelu_tanh") sum = GeluTanh(sum);
      if (step == "gelu_erf") sum = GeluErf(sum);
      if (step == "tanh") sum = std::tanh(sum);
      if (step == "sigmoid") sum = Sigmoid(sum);
    }
    At(out, ij) = sum;
  });
}

// out = f(a, b) with broadcasting; also for operands of one shape.
ReferenceFunction Binary(std::function<double(double, double)> f) {
  return [f](const KernelSpec&, Operands& o) {
    ForEachIndex(o[2].type.shape, [&](const Index& index) { At(o[2], index) = f(At(o[0], index), At(o[1], index)); });
  };
}

ReferenceFunction Unary(std::function<double(double)> f) {
  return [f](const KernelSpec&, Operands& o) {
    std::transform(o[0].values.begin(), o[0].values.end(), o[1].values.begin(), f);
  };
}

int64_t LabelsThatCount(const KernelSpec& spec, const ReferenceTensor& labels) {
  const double ignore = static_cast<double>(GetInt(spec.attributes, "ignore_index", -100));
  return std::count_if(labels.values.begin(), labels.values.end(), [&](double label) { return label != ignore; });
}

// Softmax of row i of `logits`.
std::vector<double> SoftmaxRow(const ReferenceTensor& logits, int64_t i) {
  const int64_t classes = logits.type.shape[1];
  std::vector<double> row(logits.values.begin() + i * classes, logits.values.begin() + (i + 1) * classes);
  double sum = 0;
  for (double x : row) sum += std::exp(x);
  for (double& x : row) x = std::exp(x) / sum;
  return row;
}

double CrossEntropyDivisor(const KernelSpec& spec, const ReferenceTensor& labels) {
  return Mean(spec) ? std::max<double>(1, static_cast<double>(LabelsThatCount(spec, labels))) : 1;
}

void CrossEntropy(const KernelSpec& spec, Operands& o) {
  double loss = 0;
  for (int64_t i = 0; i < o[0].type.shape[0]; ++i) {
    const double label = o[1].values[i];
    if (label == static_cast<double>(GetInt(spec.attributes, "ignore_index", -100))) continue;
    loss -= std::log(SoftmaxRow(o[0], i)[static_cast<size_t>(label)]);
  }
  o[2].values[0] = loss / CrossEntropyDivisor(spec, o[1]);
}

void CrossEntropyGrad(const KernelSpec& spec, Operands& o) {
  const int64_t classes = o[1].type.shape[1];
  for (int64_t i = 0; i < o[1].type.shape[0]; ++i) {
    const double label = o[2].values[i];
    const bool ignored = label == static_cast<double>(GetInt(spec.attributes, "ignore_index", -100));
    const std::vector<double> softmax = SoftmaxRow(o[1], i);
    for (int64_t c = 0; c < classes; ++c) {
      const double grad = (softmax[c] - (c == static_cast<int64_t>(label))) / CrossEntropyDivisor(spec, o[2]);
      o[3].values[i * classes + c] = ignored ? 0 : o[0].values[0] * grad;
    }
  }
}

void Mse(const KernelSpec& spec, Operands& o) {
  double sum = 0;
  for (size_t i = 0; i < o[0].values.size(); ++i) sum += std::pow(o[0].values[i] - o[1].values[i], 2);
  o[2].values[0] = Mean(spec) ? sum / static_cast<double>(o[0].values.size()) : sum;
}

void MseGrad(const KernelSpec& spec, Operands& o) {
  const double divisor = Mean(spec) ? static_cast<double>(o[1].values.size()) : 1;
  for (size_t i = 0; i < o[1].values.size(); ++i) {
    o[3].values[i] = o[0].values[0] * 2 * (o[1].values[i] - o[2].values[i]) / divisor;
  }
}

void Reduce(const KernelSpec& spec, Operands& o, bool mean) {
  const Shape& shape = o[0].type.shape;
  std::vector<int64_t> axes = GetInts(spec.attributes, "axes", {});
  const bool all = axes.empty();
  std::fill(o[1].values.begin(), o[1].values.end(), 0.0);
  ForEachIndex(shape, [&](const Index& index) {
    int64_t flat = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      const bool reduced = all || std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)) > 0;
      if (!reduced) flat = flat * shape[i] + index[i];
    }
    o[1].values[flat] += At(o[0], index);
  });
  if (!mean) return;
  const double share = static_cast<double>(o[0].values.size()) / static_cast<double>(o[1].values.size());
  for (double& value : o[1].values) value /= share;
}

void BroadcastTo(const KernelSpec&, Operands& o) {
  ForEachIndex(o[1].type.shape, [&](const Index& index) { At(o[1], index) = At(o[0], index); });
}

void SameOrder(const KernelSpec&, Operands& o) { o[1].values = o[0].values; }

void Transpose(const KernelSpec& spec, Operands& o) {
  const std::vector<int64_t> perm = GetInts(spec.attributes, "perm", {});
  ForEachIndex(o[1].type.shape, [&](const Index& index) {
    Index in(index.size());
    for (size_t i = 0; i < perm.size(); ++i) in[perm[i]] = index[i];
    At(o[1], index) = At(o[0], in);
  });
}

Index Sum(Index a, const std::vector<int64_t>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

void Slice(const KernelSpec& spec, Operands& o) {
  const std::vector<int64_t> begin = GetInts(spec.attributes, "begin", {});
  // At() broadcasts axes of extent 1, whose begin is 0.
  ForEachIndex(o[1].type.shape, [&](const Index& index) { At(o[1], index) = At(o[0], Sum(index, begin)); });
}

void Pad(const KernelSpec& spec, Operands& o) {
  const std::vector<int64_t> before = GetInts(spec.attributes, "before", {});
  std::fill(o[1].values.begin(), o[1].values.end(), 0.0);
  ForEachIndex(o[0].type.shape, [&](const Index& index) { At(o[1], Sum(index, before)) = At(o[0], index); });
}

void Concat(const KernelSpec& spec, Operands& o) {
  const size_t axis = static_cast<size_t>(GetInt(spec.attributes, "axis", 0));
  int64_t place = 0;
  for (size_t input = 0; input + 1 < o.size(); ++input) {
    ForEachIndex(o[input].type.shape, [&](Index index) {
      const double value = At(o[input], index);
      index[axis] += place;
      At(o.back(), index) = value;
    });
    place += o[input].type.shape[axis];
  }
}

void Accumulate(const KernelSpec&, Operands& o) {
  for (size_t i = 0; i < o[0].values.size(); ++i) o[1].values[i] += o[0].values[i];
}

void Sgd(const KernelSpec& spec, Operands& o) {
  const double lr = GetDouble(spec.attributes, "lr", 0);
  const double momentum = GetDouble(spec.attributes, "momentum", 0);
  for (size_t i = 0; i < o[0].values.size(); ++i) {
    double& w = o[0].values[i];
    const double g = o[1].values[i] + GetDouble(spec.attributes, "weight_decay", 0) * w;
    double step = g;
    if (momentum != 0) {
      double& accum = o[2].values[i];
      accum = momentum * accum + g;
      step = GetBool(spec.attributes, "nesterov", false) ? g + momentum * accum : accum;
    }
    w -= lr * step;
  }
}

void Adam(const KernelSpec& spec, Operands& o) {
  const double b1 = GetDouble(spec.attributes, "beta1", 0.9);
  const double b2 = GetDouble(spec.attributes, "beta2", 0.999);
  const double t = o[4].values[0] += 1;
  for (size_t i = 0; i < o[0].values.size(); ++i) {
    double& w = o[0].values[i];
    double& m = o[2].values[i];
    double& v = o[3].values[i];
    const double g = o[1].values[i] + GetDouble(spec.attributes, "weight_decay", 0) * w;
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    const double denominator = std::sqrt(v) / std::sqrt(1 - std::pow(b2, t)) + GetDouble(spec.attributes, "eps", 1e-8);
    w -= GetDouble(spec.attributes, "lr", 0) / (1 - std::pow(b1, t)) * m / denominator;
  }
}

const std::map<std::string, ReferenceFunction>& References() {
  static const auto* const references = new std::map<std::string, ReferenceFunction>{
      {"matmul", Matmul},
      {"add", Binary([](double a, double b) { return a + b; })},
      {"sub", Binary([](double a, double b) { return a - b; })},
      {"mul", Binary([](double a, double b) { return a * b; })},
      {"div", Binary([](double a, double b) { return a / b; })},
      {"neg", Unary([](double x) { return -x; })},
      {"relu", Unary(Relu)},
      {"relu_grad", Binary([](double dy, double y) { return y > 0 ? dy : 0; })},
      {"tanh", Unary([](double x) { return std::tanh(x); })},
      {"tanh_grad", Binary([](double dy, double y) { return dy * (1 - y * y); })},
      {"sigmoid", Unary(Sigmoid)},
      {"sigmoid_grad", Binary([](double dy, double y) { return dy * y * (1 - y); })},
      {"gelu", [](const KernelSpec& s, Operands& o) { Unary(Approximate(s) ? GeluTanh : GeluErf)(s, o); }},
      {"gelu_grad",
       [](const KernelSpec& s, Operands& o) {
         const auto grad = Approximate(s) ? GeluTanhGrad : GeluErfGrad;
         Binary([grad](double dy, double x) { return dy * grad(x); })(s, o);
       }},
      {"softmax_cross_entropy", CrossEntropy},
      {"softmax_cross_entropy_grad", CrossEntropyGrad},
      {"mse", Mse},
      {"mse_grad", MseGrad},
      {"reduce_sum", [](const KernelSpec& s, Operands& o) { Reduce(s, o, false); }},
      {"reduce_mean", [](const KernelSpec& s, Operands& o) { Reduce(s, o, true); }},
      {"broadcast_to", BroadcastTo},
      {"reshape", SameOrder},
      {"copy", SameOrder},
      {"transpose", Transpose},
      {"slice", Slice},
      {"pad", Pad},
      {"concat", Concat},
      {"grad_accumulate", Accumulate},
      {"sgd", Sgd},
      {"adam", Adam},
  };
  return *references;
}

}  // namespace

bool HasReference(const std::string& op) { return References().count(op) > 0; }

void RunReference(const KernelSpec& spec, std::vector<ReferenceTensor>& operands) {
  const auto it = References().find(spec.op);
  PIPELOOM_CHECK(it != References().end(), "no reference for ", spec.op);
  it->second(spec, operands);
}

}  // namespace pipeloom
