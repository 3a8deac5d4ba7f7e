#include "plugin/mindspore/graph_writer.h"

#include <cstring>

namespace pipeloom::ms {
namespace {

pipeloom_attribute View(const std::string& name, const Attribute& attribute) {
  pipeloom_attribute view;
  std::memset(&view, 0, sizeof(view));
  view.name = name.c_str();
  view.kind = static_cast<int>(attribute.index());  // the alternatives stand in the order of the C enum
  if (const auto* boolean = std::get_if<bool>(&attribute)) view.value.boolean = *boolean ? 1 : 0;
  if (const auto* integer = std::get_if<int64_t>(&attribute)) view.value.integer = *integer;
  if (const auto* real = std::get_if<double>(&attribute)) view.value.real = *real;
  if (const auto* text = std::get_if<std::string>(&attribute)) view.value.string = text->c_str();
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute)) {
    view.value.integers.elements = ints->data();
    view.value.integers.count = ints->size();
  }
  return view;
}

}  // namespace

void Check(int code) {
  if (code != PIPELOOM_OK) throw Refused(pipeloom_last_error());
}

int64_t Type::num_elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

int64_t Type::bytes() const {
  constexpr int64_t kBytes[] = {4, 4, 8, 1};
  return num_elements() * kBytes[dtype];
}

std::string Type::ToString() const {
  constexpr const char* kNames[] = {"f32", "i32", "i64", "bool"};
  std::string text = kNames[dtype];
  text += '[';
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + ']';
}

Tensor GraphWriter::AddInput(const std::string& name, const Type& type, bool batched) {
  Tensor tensor{0, type};
  const pipeloom_type view = type.View();
  Check(pipeloom_graph_add_input(graph_, name.c_str(), &view, batched ? 0 : PIPELOOM_NO_BATCH_AXIS, &tensor.value));
  return tensor;
}

Tensor GraphWriter::AddParameter(const std::string& name, const Type& type, bool trainable) {
  Tensor tensor{0, type};
  const pipeloom_type view = type.View();
  Check(pipeloom_graph_add_parameter(graph_, name.c_str(), name.c_str(), &view, trainable ? 1 : 0, &tensor.value));
  return tensor;
}

Tensor GraphWriter::AddConstant(const Type& type, const std::vector<double>& elements) {
  Tensor tensor{0, type};
  const pipeloom_type view = type.View();
  Check(pipeloom_graph_add_constant(graph_, "c", &view, elements.data(), elements.size(), &tensor.value));
  return tensor;
}

Tensor GraphWriter::Add(const std::string& op, const std::vector<Tensor>& operands, const Type& result,
                        const Attributes& attributes, const Place& place) {
  return AddNode(op, operands, {result}, attributes, place)[0];
}

std::vector<Tensor> GraphWriter::AddNode(const std::string& op, const std::vector<Tensor>& operands,
                                         const std::vector<Type>& results, const Attributes& attributes,
                                         const Place& place) {
  std::vector<pipeloom_value> values;
  for (const Tensor& operand : operands) values.push_back(operand.value);
  std::vector<pipeloom_attribute> attribute_views;
  for (const auto& [name, attribute] : attributes) attribute_views.push_back(View(name, attribute));
  std::vector<pipeloom_type> types;
  for (const Type& type : results) types.push_back(type.View());
  pipeloom_node node;
  pipeloom_node_init(&node);
  node.op = op.c_str();
  node.operands = values.data();
  node.num_operands = values.size();
  node.attributes = attribute_views.data();
  node.num_attributes = attribute_views.size();
  node.num_results = results.size();
  node.result_types = types.empty() ? nullptr : types.data();
  node.cell = place.cell.c_str();
  node.phase = place.phase;
  node.rate = place.rate;
  std::vector<pipeloom_value> written(results.size());
  Check(pipeloom_graph_add_node(graph_, &node, written.data()));
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < results.size(); ++i) tensors.push_back({written[i], results[i]});
  return tensors;
}

std::vector<Tensor> GraphWriter::AddCall(const pipeloom_graph* block, const std::vector<Tensor>& operands,
                                         const std::vector<Type>& results, const Place& place) {
  std::vector<pipeloom_value> values;
  for (const Tensor& operand : operands) values.push_back(operand.value);
  pipeloom_node node;
  pipeloom_node_init(&node);
  node.operands = values.data();
  node.num_operands = values.size();
  node.num_results = results.size();
  node.cell = place.cell.c_str();
  node.phase = place.phase;
  node.rate = place.rate;
  std::vector<pipeloom_value> written(results.size());
  Check(pipeloom_graph_add_call(graph_, block, &node, written.data()));
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < results.size(); ++i) tensors.push_back({written[i], results[i]});
  return tensors;
}

void GraphWriter::AddOutput(const Tensor& value, const char* reduce) {
  Check(pipeloom_graph_add_output(graph_, value.value, reduce));
}

}  // namespace pipeloom::ms
