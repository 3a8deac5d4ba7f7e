#include "passes/configured_stages.h"

namespace pipeloom {

ConfiguredStages::ConfiguredStages(const PipelineConfig& config) {
  for (const auto& [path, stage] : config.stage_of_cell) stage_of_path_.emplace(path, stage);
}

std::optional<StageId> ConfiguredStages::Find(absl::string_view cell) const {
  for (absl::string_view path = cell;;) {
    if (const auto found = stage_of_path_.find(path); found != stage_of_path_.end()) return found->second;
    if (path.empty()) return std::nullopt;
    const size_t dot = path.rfind('.');
    path = dot == absl::string_view::npos ? absl::string_view() : path.substr(0, dot);
  }
}

}  // namespace pipeloom
