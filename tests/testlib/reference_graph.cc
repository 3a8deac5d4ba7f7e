#include <utility>

#include "kernels/base/status_macros.h"
#include "passes/ir/op_table.h"
#include "tests/testlib/reference_ops.h"

namespace pipeloom {
namespace {

RefTensor Given(const RefValues& values, const std::string& name, const TensorType& type) {
  const auto found = values.find(name);
  PIPELOOM_CHECK(found != values.end() && found->second.type == type, "no value ", name, " of type ", type.ToString());
  return found->second;
}

RefTensor Constant(const Value& constant) {
  std::vector<double> elements = constant.elements;
  if (elements.size() == 1) elements.resize(constant.type.num_elements(), elements[0]);
  return {constant.type, std::move(elements)};
}

void RunNode(const Node& node, RefValues& values) {
  std::vector<RefTensor> inputs;
  for (const Value* operand : node.operands) inputs.push_back(values.at(operand->name));
  std::vector<TensorType> types;
  for (const Value* result : node.results) types.push_back(result->type);
  std::vector<RefTensor> computed = RunReference(node.op, inputs, node.attributes, types);

  std::vector<Value*> targets = node.results;
  for (Value* written : WrittenOperands(node)) targets.push_back(written);
  PIPELOOM_CHECK(computed.size() == targets.size(), node.op, " gives ", computed.size(), " values for ",
                 targets.size());
  for (size_t i = 0; i < targets.size(); ++i) values[targets[i]->name] = std::move(computed[i]);
}

}  // namespace

RefValues RunReferenceGraph(const Graph& graph, const RefValues& inputs, const RefValues& parameters) {
  RefValues values;
  for (const Value* input : graph.inputs()) values[input->name] = Given(inputs, input->name, input->type);
  for (const Value* parameter : graph.parameters()) {
    values[parameter->name] = Given(parameters, parameter->parameter, parameter->type);
  }
  for (const Value* constant : graph.constants()) values[constant->name] = Constant(*constant);
  for (const auto& node : graph.nodes()) RunNode(*node, values);
  return values;
}

}  // namespace pipeloom
