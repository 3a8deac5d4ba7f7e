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

// Of logits f32[n, c] and labels i32[n] or i64[n]; f32[]. `reduction`: "mean", over the labels that are not
// `ignore_index`, or "sum". Where the losses of the micro-batches are averaged, the mean is over all labels of the
// step, whichever micro-batch they are in; they are then an input of the step, or one reshaped.
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
// Parts of `sizes` along `axis`, which are all of its extent.
std::vector<Var> Split(Var x, const std::vector<int64_t>& sizes, int64_t axis);

// To elements of another type: from f32 toward zero, what is beyond the integers to the nearest one, NaN to 0; true
// where it is not 0.
Var Cast(Var x, DType to);
// Elementwise and broadcast, of one type; bool.
Var Equal(Var a, Var b);
Var NotEqual(Var a, Var b);
Var Less(Var a, Var b);
Var LessEqual(Var a, Var b);
Var Greater(Var a, Var b);
Var GreaterEqual(Var a, Var b);
// Of bool.
Var LogicalAnd(Var a, Var b);
Var LogicalOr(Var a, Var b);
Var LogicalNot(Var x);
// Elements of `a` where `condition` (bool) holds, of `b` where it does not; all three broadcast.
Var Where(Var condition, Var a, Var b);

// Of each element either 0, with probability `p`, or x / (1 - p); x itself where the graph is not for training. Which
// ones is a function of `seed`, the step, the micro-batch, the cell that calls, how many dropouts it called before, and
// the element.
Var Dropout(Var x, double p, uint64_t seed = 0);

// Prints `text` and `x` once a micro-batch to standard output, and gives `x`. It happens on the stage of the cell that
// calls, or of `x` where the cell has none.
Var Print(const std::string& text, Var x);

}  // namespace pipeloom::ops

#endif  // PLUGIN_CELLS_OPS_H_
