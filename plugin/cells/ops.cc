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
  return Op("softmax_cross_entropy", {logits, labels}, {{"reduction", reduction}, {"ignore_index", ignore_index}});
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

}  // namespace pipeloom::ops
