#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "plugin/mindspore/op_families.h"

namespace pipeloom::ms {
namespace {

constexpr const char* kReduceSum = "reduce_sum";
constexpr const char* kReduceMax = "reduce_max";
constexpr const char* kReduceMean = "reduce_mean";
constexpr const char* kMatmul = "matmul";
constexpr const char* kBatchMatmul = "batch_matmul";

// (a, b, transpose a, transpose b)
template <const char* const& kOp>
Item Product(const OpImport& import) {
  Attributes attributes;
  if (BoolOf(import.ConstantAt(2))) attributes["transpose_a"] = true;
  if (BoolOf(import.ConstantAt(3))) attributes["transpose_b"] = true;
  return Item::Of(import.Emit(kOp, {import.TensorAt(0), import.TensorAt(1)}, import.ResultType(), attributes));
}

Item BiasAdd(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  if (x.type.shape.size() != 2)
    throw Refused(Describe(import.node()) + ": only matrices have a bias yet, not " + x.type.ToString());
  return Item::Of(import.Emit("add", {x, import.TensorAt(1)}, import.ResultType()));
}

Item BiasAddGrad(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  std::vector<int64_t> axes(x.type.shape.size() - 1);
  std::iota(axes.begin(), axes.end(), 0);
  return Item::Of(import.Emit("reduce_sum", {x}, import.ResultType(), {{"axes", axes}}));
}

// (x, axes, keep) with axes () or None for all.
template <const char* const& kOp>
Item Reduction(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  const auto rank = static_cast<int64_t>(x.type.shape.size());
  const bool keep = BoolOf(import.ConstantAt(2));
  const host::ValuePtr given = import.ConstantAt(1);
  std::vector<int64_t> axes = IsNone(given) ? std::vector<int64_t>() : IntsOf(given);
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  if (rank == 0) return Item::Of(x);
  Attributes attributes;
  if (!axes.empty()) attributes["axes"] = axes;
  if (keep) attributes["keep_dims"] = true;
  return Item::Of(import.Emit(kOp, {x}, import.ResultType(), attributes));
}

// (x, axes), which are one axis
Item Softmax(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  const std::vector<int64_t> axes = IntsOf(import.ConstantAt(1));
  if (axes.size() != 1)
    throw Refused(Describe(import.node()) + " goes over " + std::to_string(axes.size()) + " axes; give one");
  const int64_t axis = axes[0] < 0 ? axes[0] + static_cast<int64_t>(x.type.shape.size()) : axes[0];
  return Item::Of(import.Emit("softmax", {x}, x.type, {{"axis", axis}}));
}

// (dy, y, axis)
Item SoftmaxGrad(const OpImport& import) {
  const Tensor y = import.TensorAt(1);
  return Item::Of(import.Emit("softmax_grad", {import.TensorAt(0), y}, y.type, {{"axis", AxisAt(import, 2, y.type)}}));
}

// (x, axis)
Item LogSoftmax(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  return Item::Of(import.Emit("log_softmax", {x}, x.type, {{"axis", AxisAt(import, 1, x.type)}}));
}

// (y, dy, axis)
Item LogSoftmaxGrad(const OpImport& import) {
  const Tensor y = import.TensorAt(0);
  return Item::Of(
      import.Emit("log_softmax_grad", {import.TensorAt(1), y}, y.type, {{"axis", AxisAt(import, 2, y.type)}}));
}

// (logits, labels): the mean over rows, or its gradient.
Item SparseSoftmaxCrossEntropy(const OpImport& import) {
  const Tensor logits = import.TensorAt(0);
  const Tensor labels = import.TensorAt(1);
  if (!BoolAttribute(import.node(), "is_grad", false)) {
    return Item::Of(import.Emit("softmax_cross_entropy", {logits, labels}, import.ResultType()));
  }
  return Item::Of(import.Emit("softmax_cross_entropy_grad", {import.Scalar(1), logits, labels}, logits.type));
}

// Layer norm is over the last axis here.
void WantLastAxis(const OpImport& import, size_t first_operand, const Type& type) {
  const auto last = static_cast<int64_t>(type.shape.size()) - 1;
  for (size_t i = first_operand; i < first_operand + 2; ++i) {
    if (AxisAt(import, i, type) == last) continue;
    throw Refused(Describe(import.node()) + " goes over more than the last axis, which is not there yet");
  }
}

// (x, gamma, beta, first axis of the norm, first axis of the parameters, epsilon); mean and variance, which it gives
// too, are what its gradient computes again.
Item LayerNorm(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  WantLastAxis(import, 3, x.type);
  const Tensor y = import.Emit("layer_norm", {x, import.TensorAt(1), import.TensorAt(2)}, x.type,
                               {{"eps", NumberOf(import.ConstantAt(5))}});
  return Item::TupleOf({Item::Of(y), Item(), Item()});
}

// (x, dy, variance, mean, gamma, axes as above)
Item LayerNormGrad(const OpImport& import) {
  const Tensor x = import.TensorAt(0);
  const Tensor dy = import.TensorAt(1);
  const Tensor gamma = import.TensorAt(4);
  WantLastAxis(import, 5, x.type);
  const Attributes eps = {{"eps", FloatAttribute(import.node(), "epsilon", 1e-7)}};
  std::vector<int64_t> axes(x.type.shape.size() - 1);
  std::iota(axes.begin(), axes.end(), 0);
  return Item::TupleOf({Item::Of(import.Emit("layer_norm_grad_x", {dy, x, gamma}, x.type, eps)),
                        Item::Of(import.Emit("layer_norm_grad_gamma", {dy, x}, gamma.type, eps)),
                        Item::Of(import.Emit("reduce_sum", {dy}, gamma.type, {{"axes", axes}}))});
}

// A text before a tensor is printed with it.
Item Print(const OpImport& import) {
  std::string text;
  for (size_t i = 0; i < import.size(); ++i) {
    const Item& item = import.operand(i);
    if (item.constant != nullptr && item.constant->isa<host::StringImm>()) {
      text += (text.empty() ? "" : "\n") + host::GetValue<std::string>(item.constant);
      continue;
    }
    import.EmitMany("print", {import.AsTensor(item)}, {}, text.empty() ? Attributes() : Attributes{{ "text", text }});
    text.clear();
  }
  if (!text.empty())
    throw Refused(Describe(import.node()) + " prints a text without a tensor after it, which Pipeloom cannot yet");
  return Item();
}

}  // namespace

void AddNetworkOps(Rewrites* rewrites) {
  rewrites->insert({
      {"BatchMatMul", Product<kBatchMatmul>},
      {"BiasAdd", BiasAdd},
      {"BiasAddGrad", BiasAddGrad},
      {"LayerNorm", LayerNorm},
      {"LayerNormGrad", LayerNormGrad},
      {"LogSoftmax", LogSoftmax},
      {"LogSoftmaxGrad", LogSoftmaxGrad},
      {"MatMul", Product<kMatmul>},
      {"Print", Print},
      {"ReduceMax", Reduction<kReduceMax>},
      {"ReduceMean", Reduction<kReduceMean>},
      {"ReduceSum", Reduction<kReduceSum>},
      {"Softmax", Softmax},
      {"SoftmaxBackward", SoftmaxGrad},
      {"SparseSoftmaxCrossEntropyWithLogits", SparseSoftmaxCrossEntropy},
      {"SumExt", Reduction<kReduceSum>},
  });
}

}  // namespace pipeloom::ms
