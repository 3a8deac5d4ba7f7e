#ifndef PASSES_CONFIGURED_STAGES_H_
#define PASSES_CONFIGURED_STAGES_H_

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "passes/ir/module.h"

namespace pipeloom {

// The stages that the configuration gives to cells. A snapshot; the configuration outlives it.
class ConfiguredStages {
 public:
  explicit ConfiguredStages(const PipelineConfig& config);

  // By the longest path that covers `cell`; nothing where none does.
  std::optional<StageId> Find(absl::string_view cell) const;

 private:
  absl::flat_hash_map<absl::string_view, StageId> stage_of_path_;
};

}  // namespace pipeloom

#endif  // PASSES_CONFIGURED_STAGES_H_
