#include "passes/ir/graph.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_table.h"

namespace pipeloom {

std::optional<Part> PartOfLetter(absl::string_view letter) {
  for (Part part : kParts) {
    if (letter.size() == 1 && letter[0] == PartLetter(part)) return part;
  }
  return std::nullopt;
}

// The hint, or the hint with the smallest suffix that is free.
std::string Graph::UniqueName(absl::string_view hint) {
  std::string name(hint);
  if (!values_.contains(name)) return name;
  int& suffix = taken_below_.emplace(name, 1).first->second;
  while (values_.contains(name = absl::StrCat(hint, ".", suffix))) ++suffix;
  return name;
}

// The value's name is about to be free: no smaller suffix of its hint may be skipped later.
void Graph::ForgetName(const Value* value) {
  const size_t dot = value->name.rfind('.');
  int suffix = 0;
  if (dot == std::string::npos || !absl::SimpleAtoi(absl::string_view(value->name).substr(dot + 1), &suffix)) return;
  const auto hint = taken_below_.find(absl::string_view(value->name).substr(0, dot));
  if (hint != taken_below_.end()) hint->second = std::max(1, std::min(hint->second, suffix));
}

Value* Graph::NewValue(Value::Kind kind, absl::string_view hint, TensorType type) {
  auto value = std::make_unique<Value>();
  value->kind = kind;
  value->name = UniqueName(hint);
  value->type = std::move(type);
  Value* result = value.get();
  values_.emplace(result->name, std::move(value));
  return result;
}

Value* Graph::AddInput(absl::string_view hint, TensorType type, std::optional<int> batch_axis) {
  Value* value = NewValue(Value::Kind::kInput, hint, std::move(type));
  value->batch_axis = batch_axis;
  inputs_.push_back(value);
  return value;
}

Value* Graph::AddParameter(absl::string_view hint, std::string parameter, TensorType type, bool trainable) {
  Value* value = NewValue(Value::Kind::kParameter, hint, std::move(type));
  value->parameter = std::move(parameter);
  value->trainable = trainable;
  parameter_of_name_.emplace(value->parameter, value);
  parameters_.push_back(value);
  return value;
}

Value* Graph::AddConstant(absl::string_view hint, TensorType type, std::vector<double> elements) {
  Value* value = NewValue(Value::Kind::kConstant, hint, std::move(type));
  value->elements = std::move(elements);
  constants_.push_back(value);
  return value;
}

Value* Graph::AddJoined(Value::Kind kind, absl::string_view name, TensorType type) {
  PIPELOOM_CHECK(!values_.contains(name), "value ", name, " joins graph ", name_, " twice");
  Value* value = NewValue(kind, name, std::move(type));
  inputs_.push_back(value);
  return value;
}

absl::StatusOr<Node*> Graph::AddNode(absl::string_view op, std::vector<Value*> operands, AttributeMap attributes,
                                     NodeInfo info, absl::string_view hint, std::optional<size_t> at) {
  std::vector<TensorType> operand_types;
  operand_types.reserve(operands.size());
  for (const Value* operand : operands) operand_types.push_back(operand->type);
  ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferTypes(op, operand_types, attributes));
  return AddTypedNode(op, std::move(operands), std::move(attributes), std::move(info), types, hint, at);
}

Node* Graph::AddTypedNode(absl::string_view op, std::vector<Value*> operands, AttributeMap attributes, NodeInfo info,
                          const std::vector<TensorType>& types, absl::string_view hint, std::optional<size_t> at) {
  auto node = std::make_unique<Node>();
  node->op = std::string(op);
  node->operands = std::move(operands);
  node->attributes = std::move(attributes);
  node->info = std::move(info);
  for (const TensorType& type : types) AddResult(node.get(), type, hint.empty() ? op : hint);
  Node* added = node.get();
  nodes_.insert(at ? nodes_.begin() + static_cast<std::ptrdiff_t>(*at) : nodes_.end(), std::move(node));
  return added;
}

Value* Graph::AddResult(Node* node, TensorType type, absl::string_view hint) {
  Value* result = NewValue(Value::Kind::kResult, hint, std::move(type));
  result->producer = node;
  node->results.push_back(result);
  return result;
}

void Graph::ReplaceUses(const Value* from, Value* to) {
  for (const auto& node : nodes_)
    std::replace(node->operands.begin(), node->operands.end(), const_cast<Value*>(from), to);
  for (Output& output : outputs) {
    if (output.value == from) output.value = to;
  }
}

void Graph::RemoveNodes(const std::vector<const Node*>& dead) {
  const absl::flat_hash_set<const Node*> doomed(dead.begin(), dead.end());
  auto keep = std::stable_partition(nodes_.begin(), nodes_.end(),
                                    [&](const std::unique_ptr<Node>& node) { return !doomed.contains(node.get()); });
  for (auto it = keep; it != nodes_.end(); ++it) {
    for (const Value* result : (*it)->results) {
      ForgetName(result);
      values_.erase(std::string(result->name));
    }
  }
  nodes_.erase(keep, nodes_.end());
}

void Graph::RemoveUnusedLeaves() {
  absl::flat_hash_set<const Value*> used;
  for (const auto& node : nodes_) used.insert(node->operands.begin(), node->operands.end());
  for (const Output& output : outputs) used.insert(output.value);
  for (std::vector<Value*>* leaves : {&inputs_, &parameters_, &constants_}) {
    auto keep = std::stable_partition(leaves->begin(), leaves->end(), [&](const Value* value) {
      return used.contains(value) || value->kind == Value::Kind::kInput;
    });
    for (auto it = keep; it != leaves->end(); ++it) {
      const Value* unused = *it;
      if (FindParameter(unused->parameter) == unused) parameter_of_name_.erase(unused->parameter);
      ForgetName(unused);
      values_.erase(std::string(unused->name));
    }
    leaves->erase(keep, leaves->end());
  }
}

Value* Graph::Find(absl::string_view name) const {
  auto it = values_.find(name);
  return it == values_.end() ? nullptr : it->second.get();
}

Value* Graph::FindParameter(absl::string_view parameter) const {
  auto it = parameter_of_name_.find(parameter);
  return it == parameter_of_name_.end() ? nullptr : it->second;
}

void Graph::Rename(Value* value, absl::string_view hint) {
  ForgetName(value);
  auto node = values_.extract(value->name);
  value->name = UniqueName(hint);
  node.key() = value->name;
  values_.insert(std::move(node));
}

UseMap ComputeUses(const Graph& graph) {
  UseMap uses;
  for (const auto& node : graph.nodes()) {
    for (size_t i = 0; i < node->operands.size(); ++i) {
      uses[node->operands[i]].push_back({node.get(), static_cast<int>(i)});
    }
  }
  return uses;
}

const std::vector<Use>& UsesOf(const UseMap& uses, const Value* value) {
  static const std::vector<Use>& none = *new std::vector<Use>();
  auto it = uses.find(value);
  return it == uses.end() ? none : it->second;
}

}  // namespace pipeloom
