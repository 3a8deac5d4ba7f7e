#include "passes/inline_blocks.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "passes/configured_stages.h"
#include "passes/inline_calls.h"

namespace pipeloom {
namespace {

// The calls that have not one stage for all their cells.
class CallsToInline {
 public:
  explicit CallsToInline(const Module& module) : module_(module), configured_(module.config) {}

  absl::flat_hash_set<const Node*> In(const Graph& graph) {
    absl::flat_hash_set<const Node*> calls;
    if (module_.config.stages == 1) return calls;
    // A forward call has nodes of all its cells; the backward calls go where it goes.
    absl::flat_hash_set<std::pair<absl::string_view, absl::string_view>> cells;
    for (const auto& node : graph.nodes()) {
      if (node->op == kCall && node->info.phase == Phase::kForward && HasSeveralStages(*node)) cells.insert(Key(*node));
    }
    if (cells.empty()) return calls;
    for (const auto& node : graph.nodes()) {
      if (node->op == kCall && cells.contains(Key(*node))) calls.insert(node.get());
    }
    return calls;
  }

 private:
  static std::pair<absl::string_view, absl::string_view> Key(const Node& call) {
    const auto cells = call.attributes.find("cells");
    return {call.info.cell,
            cells == call.attributes.end() ? absl::string_view() : std::get<std::string>(cells->second)};
  }

  bool HasSeveralStages(const Node& call) {
    const std::vector<absl::string_view>& inner = InnerCells(*BodyOf(module_, call));
    const std::optional<StageId> stage = configured_.Find(call.info.cell);
    return std::any_of(inner.begin(), inner.end(),
                       [&](absl::string_view cell) { return configured_.Find(CellInCall(call, cell)) != stage; });
  }

  const std::vector<absl::string_view>& InnerCells(const Graph& body) {
    const auto [entry, is_new] = inner_cells_.emplace(&body, std::vector<absl::string_view>());
    if (!is_new) return entry->second;
    absl::flat_hash_set<absl::string_view> known;
    for (const auto& node : body.nodes()) {
      if (known.insert(node->info.cell).second) entry->second.push_back(node->info.cell);
    }
    return entry->second;
  }

  const Module& module_;
  const ConfiguredStages configured_;
  absl::flat_hash_map<const Graph*, std::vector<absl::string_view>> inner_cells_;
};

}  // namespace

absl::StatusOr<bool> InlineBlocks::Run(Module& module) const {
  const size_t blocks = module.blocks.size();
  bool changed = false;
  CallsToInline calls_to_inline(module);
  for (auto& graph : module.graphs) {
    const absl::flat_hash_set<const Node*> calls = calls_to_inline.In(*graph);
    if (calls.empty()) continue;
    InlineCalls(module, *graph, calls);
    changed = true;
  }
  RemoveUncalledBlocks(module);
  return changed || module.blocks.size() != blocks;
}

}  // namespace pipeloom
