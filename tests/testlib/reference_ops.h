#ifndef TESTS_TESTLIB_REFERENCE_OPS_H_
#define TESTS_TESTLIB_REFERENCE_OPS_H_

#include <map>
#include <string>
#include <vector>

#include "kernels/base/attributes.h"
#include "kernels/base/tensor_type.h"
#include "passes/ir/graph.h"

namespace pipeloom {

// A dense row-major tensor held in double, whatever the dtype of its type.
struct RefTensor {
  TensorType type;
  std::vector<double> values;
};

// The ops of the table as plain loops in double, written from their mathematical definitions: what kernels and gradient
// rules are compared with. Faults (a label out of range, an op without a reference) end the process.
//
// Update ops return what they write, in the order of the operands written: the weight, then the states. The pipeline
// ops stand for a whole step: micro_batch_slice returns all micro-batches, micro_batch_merge and grad_accumulate take
// them all. send, receive and step_output, which move values out of a graph, have no reference; print gives nothing.
std::vector<RefTensor> RunReference(absl::string_view op, const std::vector<RefTensor>& inputs,
                                    const AttributeMap& attributes, const std::vector<TensorType>& results);

bool HasReference(absl::string_view op);

using RefValues = std::map<std::string, RefTensor>;

// Evaluates a graph of one micro-batch. `inputs` are by value name, `parameters` by parameter name; the result holds
// every value by value name, parameters as the update nodes leave them.
RefValues RunReferenceGraph(const Graph& graph, const RefValues& inputs, const RefValues& parameters);

}  // namespace pipeloom

#endif  // TESTS_TESTLIB_REFERENCE_OPS_H_
