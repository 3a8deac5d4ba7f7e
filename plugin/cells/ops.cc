#include "plugin/cells/ops.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin/cells/build_context.h"

namespace pipeloom::ops {
namespace {

// An op that goes along the last axis, along any: that one changes places with the last before and after.
Var AlongAxis(absl::string_view op, Var x, int64_t axis) {
  if (!x.has_value()) return Var();
  const int64_t rank = x.rank();
  const int64_t place = axis < 0 ? axis + rank : axis;
  if (place < 0 || place >= rank) {
    return x.Refuse(absl::StrCat(op, ": ", x.type().ToString(), " has no axis ", axis, "; give one from ", -rank,
                                 " to ", rank - 1));
  }
  const AttributeMap last = {{"axis", int64_t{-1}}};
  if (place == rank - 1) return Op(op, {x}, last);
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[place], perm.back());
  return Transpose(Op(op, {Transpose(x, perm)}, last), perm);
}

}  // namespace

Var Op(absl::string_view op, const std::vector<Var>& operands, AttributeMap attributes) {
  for (const Var& operand : operands) {
    if (operand.context() != nullptr) return operand.context()->Emit(op, operands, std::move(attributes));
  }
  return Var();
}

Var MatMul(Var a, Var b, bool transpose_a, bool transpose_b) {
  AttributeMap attributes;
  if (transpose_a) attributes["transpose_a"] = true;
  if (transpose_b) attributes["transpose_b"] = true;
  return Op("matmul", {a, b}, std::move(attributes));
}

Var Add(Var a, Var b) { return Op("add", {a, b}); }

Var Sub(Var a, Var b) { return Op("sub", {a, b}); }

Var Mul(Var a, Var b) { return Op("mul", {a, b}); }

Var Div(Var a, Var b) { return Op("div", {a, b}); }

Var Neg(Var x) { return Op("neg", {x}); }

Var Relu(Var x) { return Op("relu", {x}); }

Var Tanh(Var x) { return Op("tanh", {x}); }

Var Sigmoid(Var x) { return Op("sigmoid", {x}); }

Var Gelu(Var x, bool approximate) { return Op("gelu", {x}, {{"approximate", approximate}}); }

Var Softmax(Var x, int64_t axis) { return AlongAxis("softmax", x, axis); }

Var LogSoftmax(Var x, int64_t axis) { return AlongAxis("log_softmax", x, axis); }

Var LayerNorm(Var x, Var gamma, Var beta, double epsilon) {
  return Op("layer_norm", {x, gamma, beta}, {{"eps", epsilon}});
}

Var SoftmaxCrossEntropy(Var logits, Var labels, const std::string& reduction, int64_t ignore_index) {
  const AttributeMap attributes = {{"reduction", reduction}, {"ignore_index", ignore_index}};
  const bool over_the_step = labels.has_value() && labels.context()->purpose().loss_is_a_mean && reduction == "mean";
  if (!over_the_step) return Op("softmax_cross_entropy", {logits, labels}, attributes);
  Var divisor = labels.context()->CountLabels(labels, ignore_index);
  return Op("softmax_cross_entropy", {logits, labels, divisor}, attributes);
}

Var Mse(Var x, Var target, const std::string& reduction) { return Op("mse", {x, target}, {{"reduction", reduction}}); }

Var ReduceSum(Var x, const std::vector<int64_t>& axes, bool keep_dims) {
  return Op("reduce_sum", {x}, {{"axes", axes}, {"keep_dims", keep_dims}});
}

Var ReduceMean(Var x, const std::vector<int64_t>& axes, bool keep_dims) {
  return Op("reduce_mean", {x}, {{"axes", axes}, {"keep_dims", keep_dims}});
}

Var Reshape(Var x, std::vector<int64_t> shape) {
  auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end()) {
    int64_t known = 1;
    for (auto it = shape.begin(); it != shape.end(); ++it) known *= it == open ? 1 : *it;
    const int64_t elements = x.type().num_elements();
    if (known <= 0 || elements % known != 0) {
      return x.Refuse(absl::StrCat(x.type().ToString(), " does not reshape to [", absl::StrJoin(shape, ", "), "]; its ",
                                   elements, " elements are no multiple of the extents given"));
    }
    *open = elements / known;
  }
  return Op("reshape", {x}, {{"shape", std::move(shape)}});
}

Var BroadcastTo(Var x, const std::vector<int64_t>& shape) { return Op("broadcast_to", {x}, {{"shape", shape}}); }

Var Transpose(Var x, const std::vector<int64_t>& perm) { return Op("transpose", {x}, {{"perm", perm}}); }

Var Slice(Var x, const std::vector<int64_t>& begin, const std::vector<int64_t>& size) {
  return Op("slice", {x}, {{"begin", begin}, {"size", size}});
}

Var Pad(Var x, const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
  return Op("pad", {x}, {{"before", before}, {"after", after}});
}

Var Concat(const std::vector<Var>& parts, int64_t axis) { return Op("concat", parts, {{"axis", axis}}); }

Var Gather(Var table, Var ids) { return Op("gather", {table, ids}); }

std::vector<Var> Split(Var x, const std::vector<int64_t>& sizes, int64_t axis) {
  const TensorType type = x.type();
  const int64_t place = axis < 0 ? axis + type.rank() : axis;
  const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  const bool fits = place >= 0 && place < type.rank() && all == type.shape[static_cast<size_t>(place)];
  if (!fits) {
    x.Refuse(absl::StrCat("split: the sizes [", absl::StrJoin(sizes, ", "), "] do not add up to axis ", axis, " of ",
                          type.ToString()));
    return std::vector<Var>(sizes.size());
  }
  std::vector<int64_t> begin(type.shape.size(), 0);
  std::vector<int64_t> size(type.shape.begin(), type.shape.end());
  std::vector<Var> parts;
  for (const int64_t extent : sizes) {
    size[static_cast<size_t>(place)] = extent;
    parts.push_back(Slice(x, begin, size));
    begin[static_cast<size_t>(place)] += extent;
  }
  return parts;
}

Var Cast(Var x, DType to) { return Op("cast", {x}, {{"to", std::string(Info(to).name)}}); }

Var Equal(Var a, Var b) { return Op("equal", {a, b}); }

Var NotEqual(Var a, Var b) { return Op("not_equal", {a, b}); }

Var Less(Var a, Var b) { return Op("less", {a, b}); }

Var LessEqual(Var a, Var b) { return Op("less_equal", {a, b}); }

Var Greater(Var a, Var b) { return Op("greater", {a, b}); }

Var GreaterEqual(Var a, Var b) { return Op("greater_equal", {a, b}); }

Var LogicalAnd(Var a, Var b) { return Op("logical_and", {a, b}); }

Var LogicalOr(Var a, Var b) { return Op("logical_or", {a, b}); }

Var LogicalNot(Var x) { return Op("logical_not", {x}); }

Var Where(Var condition, Var a, Var b) { return Op("where", {condition, a, b}); }

Var Dropout(Var x, double p, uint64_t seed) {
  if (!x.has_value() || !x.context()->purpose().trains) return x;
  BuildContext& context = *x.context();
  const Var micro_batch = context.Emit("micro_batch_index", {}, {});
  return Op("dropout", {x, context.Step(), micro_batch},
            {{"p", p}, {"seed", static_cast<int64_t>(seed)}, {"site", context.NextSite()}});
}

Var Print(const std::string& text, Var x) {
  Op("print", {x}, {{"text", text}});
  return x;
}

}  // namespace pipeloom::ops
