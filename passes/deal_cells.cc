#include "passes/deal_cells.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipeloom {
namespace {

constexpr int kMostChunksPerRank = 2;

// A cell path, and how many nodes are in it.
struct CellNodes {
  std::string path;
  int nodes = 0;
};

bool IsIn(absl::string_view path, absl::string_view cell) {
  return cell.size() > path.size() && absl::StartsWith(cell, path) && (path.empty() || cell[path.size()] == '.');
}

// The cells directly in `path` ("" for the outermost), in the order in which they are first run.
std::vector<CellNodes> CellsIn(absl::string_view path, const std::vector<std::string>& cells_of_nodes) {
  std::vector<CellNodes> inner;
  for (const std::string& cell : cells_of_nodes) {
    if (!IsIn(path, cell)) continue;
    const std::string child = cell.substr(0, cell.find('.', path.empty() ? 0 : path.size() + 1));
    auto known = std::find_if(inner.begin(), inner.end(), [&](const CellNodes& other) { return other.path == child; });
    if (known == inner.end()) known = inner.insert(inner.end(), {child, 0});
    ++known->nodes;
  }
  return inner;
}

// Opens the cell with the most nodes in it until there are `wanted` cells, or none has other cells in it.
std::vector<CellNodes> OutermostCells(const std::vector<std::string>& cells_of_nodes, size_t wanted) {
  std::vector<CellNodes> cells = CellsIn("", cells_of_nodes);
  while (cells.size() < wanted) {
    auto largest = cells.end();
    for (auto it = cells.begin(); it != cells.end(); ++it) {
      if (CellsIn(it->path, cells_of_nodes).empty()) continue;
      if (largest == cells.end() || it->nodes > largest->nodes) largest = it;
    }
    if (largest == cells.end()) break;
    const std::vector<CellNodes> inner = CellsIn(largest->path, cells_of_nodes);
    cells.insert(cells.erase(largest), inner.begin(), inner.end());
  }
  return cells;
}

// The cells of a node, or of each of those in the block that it calls.
std::vector<std::string> CellsOf(const Module& module, const Node& node) {
  if (node.op != kCall) return {node.info.cell};
  std::vector<std::string> cells;
  for (const auto& inner : BodyOf(module, node)->nodes()) cells.push_back(CellInCall(node, inner->info.cell));
  return cells;
}

// The cells of the forward nodes in order, without the one that makes the loss.
std::vector<std::string> CellsOfNodes(const Module& module, const Graph& graph) {
  const std::string loss = graph.update && !graph.outputs.empty() && graph.outputs[0].value->producer != nullptr
                               ? graph.outputs[0].value->producer->info.cell
                               : "";
  std::vector<std::string> cells;
  for (const auto& node : graph.nodes()) {
    if (node->info.phase != Phase::kForward) continue;
    for (std::string& cell : CellsOf(module, *node)) {
      const bool makes_loss = !loss.empty() && (cell == loss || IsIn(loss, cell));
      if (!cell.empty() && !makes_loss) cells.push_back(std::move(cell));
    }
  }
  return cells;
}

}  // namespace

absl::StatusOr<bool> DealCells::Run(Module& module) const {
  PipelineConfig& config = module.config;
  if (!config.deal_cells) return false;
  config.deal_cells = false;
  const auto stages = static_cast<size_t>(config.stages);
  if (stages == 1) return true;
  const std::vector<CellNodes> cells =
      OutermostCells(CellsOfNodes(module, *module.graphs[0]), kMostChunksPerRank * stages);
  if (cells.size() < stages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the network has ", cells.size(), " cells (",
        absl::StrJoin(cells, ", ", [](std::string* out, const CellNodes& cell) { out->append(cell.path); }), ") for ",
        stages, " stages; use fewer stages"));
  }
  const size_t runs = std::min<size_t>(kMostChunksPerRank, cells.size() / stages) * stages;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t run = ((i + 1) * runs - 1) / cells.size();
    config.stage_of_cell.emplace_back(cells[i].path, StageId(static_cast<int>(run % stages)));
  }
  return true;
}

absl::Status DealCells::CheckAfter(const Module& module) const {
  return module.config.deal_cells ? absl::InternalError("cells are still to be dealt out") : absl::OkStatus();
}

}  // namespace pipeloom
