#ifndef PLUGIN_MINDSPORE_ANF_H_
#define PLUGIN_MINDSPORE_ANF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/anf.h"
#include "ir/func_graph.h"
#include "ir/primitive.h"
#include "ir/tensor.h"
#include "plugin/mindspore/graph_writer.h"

// Reading MindSpore's graphs.
namespace pipeloom::ms {

namespace host = ::mindspore;

// The name of the primitive that the node applies; "" where it calls a graph.
std::string OpName(const host::AnfNodePtr& node);
// The primitive; nullptr where the node calls a graph.
host::PrimitivePtr PrimitiveOf(const host::AnfNodePtr& node);

// Whether the node stands for an order of effects (MindSpore's monads), and for no value.
bool IsEffectOrder(const host::AnfNodePtr& node);

// Attributes of the node's primitive. Refused, naming the op, where one is missing.
int64_t IntAttribute(const host::AnfNodePtr& node, const std::string& name);
bool BoolAttribute(const host::AnfNodePtr& node, const std::string& name, bool fallback);
double FloatAttribute(const host::AnfNodePtr& node, const std::string& name, double fallback);
std::string StringAttribute(const host::AnfNodePtr& node, const std::string& name);

// Constants that are operands: an axis, a shape, a flag.
bool IsNone(const host::ValuePtr& value);
int64_t IntOf(const host::ValuePtr& value);
double NumberOf(const host::ValuePtr& value);
bool BoolOf(const host::ValuePtr& value);
std::vector<int64_t> IntsOf(const host::ValuePtr& value);  // of a tuple, or the one of a number

// Refused for types that Pipeloom does not have and for shapes that are known at run time only.
Type TypeOf(const host::AbstractBasePtr& abstract);
Type TypeOf(const host::tensor::TensorPtr& tensor);
bool IsTensor(const host::AbstractBasePtr& abstract);
// The elements of a constant, as doubles.
std::vector<double> ElementsOf(const host::tensor::TensorPtr& tensor);

// How messages name a node: "MatMul (Default/network-Net/layer1-Dense)".
std::string Describe(const host::AnfNodePtr& node);

}  // namespace pipeloom::ms

#endif  // PLUGIN_MINDSPORE_ANF_H_
