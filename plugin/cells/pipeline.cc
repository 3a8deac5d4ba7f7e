#include "plugin/cells/pipeline.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {

absl::StatusOr<std::vector<std::pair<std::string, StageId>>> StagesOfCells(const CellTree& tree,
                                                                           const StageConfig& stage_config) {
  std::vector<std::pair<std::string, StageId>> stages;
  absl::flat_hash_map<std::string, int> given;
  for (const auto& [path, stage] : stage_config) {
    const absl::StatusOr<Cell*> cell = tree.Find(path);
    if (!cell.ok()) return Annotate(cell.status(), absl::StrCat("stage_config, stage ", stage));
    if (const auto [it, added] = given.emplace(path, stage); !added) {
      return absl::InvalidArgumentError(absl::StrCat("stage_config gives cell '", path, "' twice, stage ", it->second,
                                                     " and stage ", stage, "; keep one"));
    }
    if (const std::optional<int> own = (*cell)->pipeline_stage(); own.has_value() && *own != stage) {
      return absl::InvalidArgumentError(absl::StrCat("stage_config gives cell '", path, "' stage ", stage,
                                                     ", but its own pipeline stage is ", *own,
                                                     "; give one of the two, or the same stage in both"));
    }
    stages.emplace_back(path, StageId(stage));
  }
  for (const CellTree::NamedCell& named : tree.cells()) {
    const std::optional<int> own = named.cell->pipeline_stage();
    if (own.has_value() && !given.contains(named.path)) stages.emplace_back(named.path, StageId(*own));
  }
  return stages;
}

}  // namespace pipeloom
