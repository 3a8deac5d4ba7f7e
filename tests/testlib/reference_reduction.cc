#include <algorithm>
#include <limits>

#include "tests/testlib/reference_family.h"

namespace pipeloom::reference {
namespace {

Tensors Reduce(const Tensors& in, const AttributeMap& attributes, const Types& out, double start,
               double (*f)(double, double)) {
  const std::vector<int64_t> axes = GetInts(attributes, "axes", {});
  const bool keep_dims = GetBool(attributes, "keep_dims", false);
  Tensors result = {Zeros(out[0])};
  std::fill(result[0].values.begin(), result[0].values.end(), start);
  ForEach(in[0].type.shape, [&](const Index& index) {
    Index kept;
    for (int64_t axis = 0; axis < static_cast<int64_t>(index.size()); ++axis) {
      const bool reduced = axes.empty() || std::find(axes.begin(), axes.end(), axis) != axes.end();
      if (!reduced || keep_dims) kept.push_back(reduced ? 0 : index[axis]);
    }
    double& value = result[0].values[Offset(out[0].shape, kept)];
    value = f(value, in[0].values[Offset(in[0].type.shape, index)]);
  });
  return result;
}

Tensors ReduceSum(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  return Reduce(in, attributes, out, 0, [](double a, double b) { return a + b; });
}

Tensors ReduceMax(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  return Reduce(in, attributes, out, -std::numeric_limits<double>::infinity(),
                [](double a, double b) { return std::max(a, b); });
}

Tensors ReduceMean(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  Tensors result = ReduceSum(in, attributes, out);
  const double summed = static_cast<double>(in[0].values.size()) / static_cast<double>(result[0].values.size());
  for (double& value : result[0].values) value /= summed;
  return result;
}

}  // namespace

References ReductionReferences() {
  return {
      {"reduce_sum", ReduceSum},
      {"reduce_mean", ReduceMean},
      {"reduce_max", ReduceMax},
  };
}

}  // namespace pipeloom::reference
