#include "tests/bench/workloads.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/cells/layers.h"
#include "plugin/cells/losses.h"

namespace pipeloom {
namespace {

// `widths` of the layers, all but the last with a ReLU; the first `first_stage` layers are on stage 0.
Workload MakeMlp(const std::vector<int64_t>& widths, bool last_relu, size_t first_stage, int64_t batch,
                 int micro_batches) {
  auto network = std::make_shared<SequentialCell>();
  for (size_t layer = 0; layer + 1 < widths.size(); ++layer) {
    const int stage = layer < first_stage ? 0 : 1;
    network->Append<Dense>(widths[layer], widths[layer + 1]).SetPipelineStage(stage);
    if (layer + 2 < widths.size() || last_relu) network->Append<ReLU>().SetPipelineStage(stage);
  }
  network->SetSeed(1);
  auto with_loss = std::make_shared<WithLossCell>(network, std::make_shared<CrossEntropyLoss>());
  return {Pipeline(with_loss, micro_batches),
          {{DType::kFloat32, {batch, widths.front()}}, {DType::kInt32, {batch}}},
          static_cast<int>(widths.back())};
}

}  // namespace

absl::StatusOr<Workload> MakeWorkload(const std::string& name) {
  if (name == "mlp32") return MakeMlp({784, 512, 512, 10}, false, 1, 32, 4);
  if (name == "mlp512") return MakeMlp({784, 512, 512, 10}, false, 1, 512, 4);
  if (name == "wide") return MakeMlp(std::vector<int64_t>(9, 1024), true, 4, 256, 8);
  return absl::InvalidArgumentError(absl::StrCat("unknown workload '", name, "'; choose mlp32, mlp512 or wide"));
}

}  // namespace pipeloom
