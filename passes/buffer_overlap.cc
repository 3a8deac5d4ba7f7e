#include "passes/buffer_overlap.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/chunk_values.h"

namespace pipeloom {
namespace {

// Follows one graph node by node: what is in each buffer, and whether anybody still reads it when it is overwritten.
class OverlapCheck {
 public:
  OverlapCheck(const Module& module, ChunkId chunk) : module_(module), chunk_(chunk), values_(module, chunk) {}

  absl::Status Run() {
    for (const auto& graph : module_.graphs) {
      if (graph->chunk != chunk_) continue;
      for (size_t i = 0; i < graph->nodes().size(); ++i) position_[graph->nodes()[i].get()] = i;
    }
    for (const auto& graph : module_.graphs) {
      if (graph->chunk != chunk_) continue;
      for (const auto& node : graph->nodes()) {
        for (const Value* result : node->results) RETURN_IF_ERROR(Write(*graph, *node, *result));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Write(const Graph& graph, const Node& node, const Value& result) {
    if (IsView(node)) return absl::OkStatus();
    if (!result.placement) return absl::InternalError(absl::StrCat("%", result.name, " has no place"));
    if (result.placement->space != Placement::Space::kBuffer) return absl::OkStatus();
    auto [held, inserted] = held_.emplace(result.placement->index, &result);
    if (inserted) return absl::OkStatus();
    const Value* before = std::exchange(held->second, &result);
    if (before->producer == &node) {
      return absl::InternalError(absl::StrCat("%", result.name, " and %", before->name, " of one node share buffer ",
                                              result.placement->index));
    }
    const bool accumulates = node.op == "grad_accumulate" && values_.Root(node.operands[0]) == before;
    if (accumulates) return absl::OkStatus();
    const std::vector<ChunkValues::Reader>& readers = values_.ReadersOf(before);
    for (const ChunkValues::Reader& reader : readers) {
      if (reader.part != *graph.part || values_.MadeIn(before) != *graph.part) {
        // A value of another part may stand there only if it never leaves that part.
        if (reader.part == values_.MadeIn(before)) continue;
      } else if (position_.at(reader.node) < position_.at(&node) || (reader.node == &node && node.op != kCall)) {
        continue;  // a call reads its operands until it ends
      }
      return absl::InternalError(absl::StrCat("%", result.name, " overwrites %", before->name, " in buffer ",
                                              result.placement->index, ", which ", reader.node->op, " still reads"));
    }
    return absl::OkStatus();
  }

  const Module& module_;
  const ChunkId chunk_;
  const ChunkValues values_;
  absl::flat_hash_map<const Node*, size_t> position_;  // in its graph
  absl::flat_hash_map<int, const Value*> held_;
};

}  // namespace

absl::Status CheckNoOverlapInFrame(const Graph& body) {
  absl::flat_hash_map<const Value*, size_t> last_read;
  for (size_t at = 0; at < body.nodes().size(); ++at) {
    if (IsView(*body.nodes()[at])) continue;
    for (const Value* operand : body.nodes()[at]->operands) {
      while (operand->producer != nullptr && IsView(*operand->producer)) operand = operand->producer->operands[0];
      last_read[operand] = at;
    }
  }
  absl::flat_hash_map<int, const Value*> held;
  for (size_t at = 0; at < body.nodes().size(); ++at) {
    for (const Value* result : body.nodes()[at]->results) {
      if (!result->placement) continue;
      const Value* before = std::exchange(held[result->placement->index], result);
      if (before == nullptr) continue;
      const bool read_later = last_read.contains(before) && last_read.at(before) > at;
      if (read_later || before->producer == result->producer) {
        return absl::InternalError(absl::StrCat("block ", body.name(), ": %", result->name, " overwrites %",
                                                before->name, " in buffer ", result->placement->index));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNoOverlap(const Module& module, ChunkId chunk) { return OverlapCheck(module, chunk).Run(); }

}  // namespace pipeloom
