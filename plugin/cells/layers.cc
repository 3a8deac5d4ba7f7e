#include "plugin/cells/layers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/cells/ops.h"

namespace pipeloom {

CellList::CellList(const std::vector<std::shared_ptr<Cell>>& cells) {
  for (const std::shared_ptr<Cell>& cell : cells) Append(cell);
}

std::vector<Var> CellList::Construct(const std::vector<Var>& inputs) {
  return {inputs.at(0).Refuse("a CellList is called, but it only holds cells: call list[i], or use a SequentialCell")};
}

std::vector<Var> SequentialCell::Construct(const std::vector<Var>& inputs) {
  std::vector<Var> values = inputs;
  for (const Child& child : children()) values = (*child.cell)(values);
  return values;
}

Dense::Dense(int64_t in_channels, int64_t out_channels, const DenseOptions& options)
    : weight(
          AddParameter("weight", {out_channels, in_channels}, options.weight_init.value_or(HeUniform(std::sqrt(5.0))))),
      in_channels_(in_channels),
      out_channels_(out_channels) {
  if (!options.has_bias) return;
  const double scale = 1.0 / std::sqrt(static_cast<double>(in_channels));
  bias_ = &AddParameter("bias", {out_channels}, options.bias_init.value_or(Uniform(scale)));
}

Var Dense::Construct(Var x) {
  if (x.dim(-1) != in_channels_) {
    return x.Refuse(absl::StrCat("a Dense(", in_channels_, ", ", out_channels_, ") takes values whose last extent is ",
                                 in_channels_, ", not ", x.type().ToString()));
  }
  const TensorType type = x.type();
  if (type.rank() != 2) x = ops::Reshape(x, {-1, in_channels_});
  Var y = ops::MatMul(x, weight, /*transpose_a=*/false, /*transpose_b=*/true);
  if (bias_ != nullptr) y = ops::Add(y, *bias_);
  if (type.rank() == 2) return y;
  std::vector<int64_t> shape(type.shape.begin(), type.shape.end());
  shape.back() = out_channels_;
  return ops::Reshape(y, std::move(shape));
}

Embedding::Embedding(int64_t vocab_size, int64_t embedding_size, Initializer embedding_table)
    : embedding_table(AddParameter("embedding_table", {vocab_size, embedding_size}, std::move(embedding_table))) {}

Var Embedding::Construct(Var ids) { return ops::Gather(embedding_table, ids); }

Var Flatten::Construct(Var x) { return ops::Reshape(x, {x.dim(0), -1}); }

Var ReLU::Construct(Var x) { return ops::Relu(x); }

Var GELU::Construct(Var x) { return ops::Gelu(x, approximate_); }

Var Tanh::Construct(Var x) { return ops::Tanh(x); }

Var Dropout::Construct(Var x) {
  if (!(p_ >= 0 && p_ < 1)) {
    return x.Refuse(absl::StrCat("a Dropout of p ", p_, "; give the share of elements to drop, in [0, 1)"));
  }
  return p_ == 0 ? x : ops::Dropout(x, p_, seed());
}

Var Print::Construct(Var x) { return ops::Print(text_, x); }

Var Softmax::Construct(Var x) { return ops::Softmax(x, axis_); }

Var LogSoftmax::Construct(Var x) { return ops::LogSoftmax(x, axis_); }

LayerNorm::LayerNorm(const Shape& normalized_shape, double epsilon)
    : gamma(AddParameter("gamma", normalized_shape, Ones())),
      beta(AddParameter("beta", normalized_shape, Zeros())),
      normalized_shape_(normalized_shape),
      epsilon_(epsilon) {}

Var LayerNorm::Construct(Var x) {
  const Shape shape = x.type().shape;
  const size_t axes = normalized_shape_.size();
  if (axes == 0 || shape.size() < axes ||
      !std::equal(normalized_shape_.begin(), normalized_shape_.end(), shape.end() - static_cast<int64_t>(axes))) {
    return x.Refuse(absl::StrCat("a LayerNorm(", ShapeToString(normalized_shape_),
                                 ") takes values whose last extents are those, at least one, not ",
                                 x.type().ToString()));
  }
  // One after the other: the order in which C++ evaluates arguments is open, that of a graph's nodes is not.
  Var factors = gamma;
  Var offsets = beta;
  if (axes == 1) return ops::LayerNorm(x, factors, offsets, epsilon_);
  // The op goes over one axis: those that are normalized together become one.
  std::vector<int64_t> rows(shape.begin(), shape.end() - static_cast<int64_t>(axes));
  rows.push_back(NumElements(normalized_shape_));
  x = ops::Reshape(x, rows);
  factors = ops::Reshape(factors, {rows.back()});
  offsets = ops::Reshape(offsets, {rows.back()});
  return ops::Reshape(ops::LayerNorm(x, factors, offsets, epsilon_), {shape.begin(), shape.end()});
}

}  // namespace pipeloom
