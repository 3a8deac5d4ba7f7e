// Times compiling a network of equal layers, and how that grows with their number: what a host takes to build its step
// graph, what the passes and the rank programs take, and what binding them takes (kernels, buffers, channels). Times
// are those of the process on all cores, so that what else a machine does counts little.

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "plugin/cells/build_module.h"
#include "plugin/cells/cell_tree.h"
#include "plugin/cells/layers.h"
#include "plugin/cells/losses.h"
#include "plugin/cells/optimizer.h"
#include "plugin/runtime/session.h"

ABSL_FLAG(int, few, 16, "layers of the smaller network");
ABSL_FLAG(int, many, 256, "layers of the larger network");
ABSL_FLAG(int, stages, 2, "stages; the layers are dealt out evenly");
ABSL_FLAG(int, micro_batches, 4, "micro-batches a step");
ABSL_FLAG(std::string, schedule, "1f1b", "the schedule");
ABSL_FLAG(int, runs, 9, "runs of each; the median is printed");

namespace pipeloom {
namespace {

constexpr int64_t kWidth = 64;
constexpr int64_t kBatch = 32;

constexpr const char* kSteps[] = {"build graph", "compile", "load"};
using Times = std::array<double, 3>;  // milliseconds of each step

std::shared_ptr<Cell> MakeLayers(int layers, int stages) {
  auto network = std::make_shared<SequentialCell>();
  for (int i = 0; i < layers; ++i) {
    const int stage = static_cast<int>(int64_t{i} * stages / layers);
    network->Append<Dense>(kWidth, kWidth).SetPipelineStage(stage);
    network->Append<ReLU>().SetPipelineStage(stage);
  }
  return std::make_shared<WithLossCell>(network, std::make_shared<CrossEntropyLoss>());
}

absl::StatusOr<Times> TimeOnce(int layers) {
  const int stages = absl::GetFlag(FLAGS_stages);
  const Pipeline pipeline(MakeLayers(layers, stages), absl::GetFlag(FLAGS_micro_batches));
  ASSIGN_OR_RETURN(const CellTree tree, CellTree::Of(*pipeline.net_with_loss));
  const SGD optimizer(pipeline.net_with_loss->TrainableParams(), 0.01);
  const std::vector<TensorType> batch = {{DType::kFloat32, {kBatch, kWidth}}, {DType::kInt32, {kBatch}}};
  PipelineConfig config;
  config.stages = stages;
  config.schedule = absl::GetFlag(FLAGS_schedule);
  ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(stages, {}));

  Times times = {};
  std::clock_t begin = std::clock();
  const auto lap = [&](double* milliseconds) {
    const std::clock_t now = std::clock();
    *milliseconds = 1e3 * static_cast<double>(now - begin) / CLOCKS_PER_SEC;
    begin = now;
  };
  ASSIGN_OR_RETURN(Module module, BuildTrainingModule(pipeline, tree, optimizer, batch, config));
  lap(&times[0]);
  ASSIGN_OR_RETURN(const CompiledProgram program, Compile(std::move(module), {}));
  lap(&times[1]);
  RETURN_IF_ERROR(session->Load(program).status());
  lap(&times[2]);
  return times;
}

// The median of each step.
absl::StatusOr<Times> Time(int layers, int runs) {
  std::array<std::vector<double>, 3> all;
  for (int run = 0; run < runs; ++run) {
    ASSIGN_OR_RETURN(const Times times, TimeOnce(layers));
    for (size_t i = 0; i < times.size(); ++i) all[i].push_back(times[i]);
  }
  Times medians = {};
  for (size_t i = 0; i < medians.size(); ++i) {
    std::sort(all[i].begin(), all[i].end());
    medians[i] = all[i][all[i].size() / 2];
  }
  return medians;
}

absl::Status RunBenchmark() {
  const int few = absl::GetFlag(FLAGS_few);
  const int many = absl::GetFlag(FLAGS_many);
  const int runs = absl::GetFlag(FLAGS_runs);
  if (few < 1 || many < 1 || runs < 1) return absl::InvalidArgumentError("give 1 or more for --few, --many and --runs");
  ASSIGN_OR_RETURN(const Times small, Time(few, runs));
  ASSIGN_OR_RETURN(const Times large, Time(many, runs));
  std::printf("layers of Dense(%d) and ReLU, %d stages, %d micro-batches; median of %d runs, ms\n",
              static_cast<int>(kWidth), absl::GetFlag(FLAGS_stages), absl::GetFlag(FLAGS_micro_batches), runs);
  std::printf("%12s %10d %10d %8s\n", "layers", few, many, "ratio");
  for (size_t i = 0; i < small.size(); ++i) {
    std::printf("%12s %10.3f %10.3f %8.2f\n", kSteps[i], small[i], large[i], large[i] / small[i]);
  }
  const double small_sum = small[0] + small[1] + small[2];
  const double large_sum = large[0] + large[1] + large[2];
  std::printf("%12s %10.3f %10.3f %8.2f\n", "together", small_sum, large_sum, large_sum / small_sum);
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipeloom

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Times compiling few and many equal layers.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = pipeloom::RunBenchmark();
  if (status.ok()) return 0;
  std::fprintf(stderr, "compile: %s\n", std::string(status.message()).c_str());
  return 1;
}
