#ifndef PLUGIN_CELLS_OPS_H_
#define PLUGIN_CELLS_OPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/cells/var.h"

// What a Construct computes with: the ops of the op table (passes/ir/op_table), which also says what types they take.
// At least one operand is a value of the graph or a parameter of the network.
namespace pipeloom::ops {

// Any op of the table, for those that have no function here.
Var Op(absl::string_view op, const std::vector<Var>& operands, AttributeMap attributes = {});

// Of two matrices, each transposed where asked: [m, k] x [k, n] -> [m, n].
Var MatMul(Var a, Var b, bool transpose_a = false, bool transpose_b = false);

// Elementwise, shapes broadcast as NumPy does.
Var Add(Var a, Var b);
Var Sub(Var a, Var b);
Var Mul(Var a, Var b);
Var Div(Var a, Var b);
Var Neg(Var x);
Var Relu(Var x);
Var Tanh(Var x);
Var Sigmoid(Var x);
// `approximate`: by the tanh formula, else by erf.
Var Gelu(Var x, bool approximate = true);

// Along `axis`; a negative one counts from the last. The exponentials' shares of their sum, and the logarithms of
// those.
Var Softmax(Var x, int64_t axis = -1);
Var LogSoftmax(Var x, int64_t axis = -1);

// Rows along the last axis with mean 0 and variance 1, times gamma, plus beta, both f32[last extent of x]; `epsilon` is
// added to the variance.
Var LayerNorm(Var x, Var gamma, Var beta, double epsilon = 1e-5);

// Of logits f32[n, c] and labels i32[n]; f32[]. `reduction`: "mean", over the labels that are not `ignore_index`, or
// "sum".
Var SoftmaxCrossEntropy(Var logits, Var labels, const std::string& reduction = "mean", int64_t ignore_index = -100);
// Mean or sum of the squared differences; f32[].
Var Mse(Var x, Var target, const std::string& reduction = "mean");

// Over `axes`; {} is over all.
Var ReduceSum(Var x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);
Var ReduceMean(Var x, const std::vector<int64_t>& axes = {}, bool keep_dims = false);

// One extent may be -1: what is left of the elements.
Var Reshape(Var x, std::vector<int64_t> shape);
Var BroadcastTo(Var x, const std::vector<int64_t>& shape);
Var Transpose(Var x, const std::vector<int64_t>& perm);
Var Slice(Var x, const std::vector<int64_t>& begin, const std::vector<int64_t>& size);
// Zeros around `x`.
Var Pad(Var x, const std::vector<int64_t>& before, const std::vector<int64_t>& after);
Var Concat(const std::vector<Var>& parts, int64_t axis);
// The rows of `table` along axis 0 that `ids` (i32 or i64) name: [ids' shape, row's shape].
Var Gather(Var table, Var ids);

}  // namespace pipeloom::ops

#endif  // PLUGIN_CELLS_OPS_H_
