#include "passes/chunk_values.h"

#include <algorithm>
#include <numeric>

#include "passes/ir/op_table.h"

namespace pipeloom {

bool IsView(const Node& node) {
  const OpDef* op = FindOp(node.op);
  return op != nullptr && op->traits.view;
}

ChunkValues::ChunkValues(const Module& module, ChunkId chunk) {
  for (const auto& graph : module.graphs) {
    if (graph->chunk != chunk) continue;
    for (const auto& node : graph->nodes()) {
      for (const Value* result : node->results) {
        results_.emplace(result->name, result);
        made_in_.emplace(result, *graph->part);
      }
    }
  }
  for (const auto& graph : module.graphs) {
    if (graph->chunk != chunk) continue;
    for (const auto& node : graph->nodes()) {
      if (IsView(*node)) continue;
      if (node->op == kCall) {
        AddCall(*BodyOf(module, *node), *graph->part, *node);
        continue;
      }
      // An accumulator's group tells how often it runs; it reads one result of a group, not its members.
      const int group = node->op == "grad_accumulate" ? 1 : static_cast<int>(GetInt(node->attributes, "group", 1));
      for (const Value* operand : node->operands) readers_[Root(operand)].push_back({*graph->part, node.get(), group});
    }
  }
}

void ChunkValues::AddCall(const Graph& body, Part part, const Node& call) {
  const auto [groups, is_new] = groups_.emplace(&body, std::vector<int>());
  if (is_new) groups->second = GroupsOfInputs(body);
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const int group = i < groups->second.size() ? groups->second[i] : 1;  // parameters come after the inputs
    readers_[Root(call.operands[i])].push_back({part, &call, group});
  }
}

std::vector<int> GroupsOfInputs(const Graph& body) {
  absl::flat_hash_map<const Value*, int> group;
  for (const auto& node : body.nodes()) {
    if (IsView(*node)) continue;
    for (const Value* operand : node->operands) {
      while (operand->producer != nullptr && IsView(*operand->producer)) operand = operand->producer->operands[0];
      int& together = group.emplace(operand, 1).first->second;
      together = std::lcm(together, static_cast<int>(GetInt(node->attributes, "group", 1)));
    }
  }
  std::vector<int> groups;
  for (const Value* input : body.inputs()) groups.push_back(group.contains(input) ? group.at(input) : 1);
  return groups;
}

const Value* ChunkValues::Root(const Value* value) const {
  for (;;) {
    if (value->kind == Value::Kind::kSaved) {
      value = results_.at(value->name);
    } else if (value->producer != nullptr && IsView(*value->producer)) {
      value = value->producer->operands[0];
    } else {
      return value;
    }
  }
}

const std::vector<ChunkValues::Reader>& ChunkValues::ReadersOf(const Value* root) const {
  static const std::vector<Reader>& none = *new std::vector<Reader>();
  auto it = readers_.find(root);
  return it == readers_.end() ? none : it->second;
}

Part ChunkValues::LastReadIn(const Value* root) const {
  Part last = MadeIn(root);
  for (const Reader& reader : ReadersOf(root)) last = std::max(last, reader.part);
  return last;
}

int ChunkValues::GroupOf(const Value* root) const {
  int group = 1;
  for (const Reader& reader : ReadersOf(root)) group = std::lcm(group, reader.group);
  return group;
}

}  // namespace pipeloom
