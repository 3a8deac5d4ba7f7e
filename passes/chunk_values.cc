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
      for (const Value* operand : node->operands) readers_[Root(operand)].push_back({*graph->part, node.get()});
    }
  }
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
  int64_t group = 1;
  for (const Reader& reader : ReadersOf(root)) {
    // An accumulator's group tells how often it runs; it reads one result of a group, not its members.
    if (reader.node->op == "grad_accumulate") continue;
    group = std::lcm(group, GetInt(reader.node->attributes, "group", 1));
  }
  return static_cast<int>(group);
}

}  // namespace pipeloom
