// Times steps of one workload, and says where the time goes: kernels, waits, and what the simulator makes of the
// measured times of F, B and W.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/schedule/schedule_table.h"
#include "passes/schedule/simulate.h"
#include "plugin/cells/build_module.h"
#include "plugin/cells/cell_tree.h"
#include "plugin/cells/optimizer.h"
#include "plugin/runtime/session.h"
#include "tests/bench/workloads.h"

ABSL_FLAG(std::string, workload, "mlp32", "mlp32, mlp512 or wide");
ABSL_FLAG(std::string, schedule, "1f1b", "gpipe or 1f1b");
ABSL_FLAG(int, steps, 500, "steps that are timed");

namespace pipeloom {
namespace {

constexpr int kStages = 2;
constexpr int kWarmUp = 50;

double Milliseconds(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

// A workload ready to run, with random inputs.
struct Ready {
  CompiledProgram program;
  std::unique_ptr<Session> session;
  int number = 0;
  std::vector<Tensor> inputs;
};

Tensor RandomInput(const TensorType& type, int classes) {
  Tensor tensor(type);
  for (int64_t i = 0; i < type.num_elements(); ++i) {
    if (type.dtype == DType::kInt32) {
      tensor.data<int32_t>()[i] = static_cast<int32_t>(i % classes);
    } else {
      tensor.data<float>()[i] = static_cast<float>(i * 7919 % 2003) / 2003.0f - 0.5f;
    }
  }
  return tensor;
}

absl::StatusOr<Ready> MakeReady(const std::string& name, const std::string& schedule) {
  ASSIGN_OR_RETURN(const Workload workload, MakeWorkload(name));
  ASSIGN_OR_RETURN(const CellTree tree, CellTree::Of(*workload.pipeline.net_with_loss));
  PipelineConfig config;
  config.stages = kStages;
  config.schedule = schedule;
  const SGD optimizer(workload.pipeline.net_with_loss->TrainableParams(), 0.01);
  ASSIGN_OR_RETURN(Module module, BuildTrainingModule(workload.pipeline, tree, optimizer, workload.inputs, config));
  Ready ready;
  ASSIGN_OR_RETURN(ready.program, Compile(std::move(module), {}));
  ASSIGN_OR_RETURN(ready.session, Session::Create(kStages, {}));
  ASSIGN_OR_RETURN(ready.number, ready.session->Load(ready.program));
  for (const CellTree::NamedParameter& named : tree.parameters()) {
    Tensor value = named.parameter->InitialValue(named.name);
    RETURN_IF_ERROR(ready.session->WriteParameter(named.name, value.view()));
  }
  for (const TensorType& type : workload.inputs) ready.inputs.push_back(RandomInput(type, workload.classes));
  return ready;
}

absl::Status RunSteps(Ready& ready, int steps, std::vector<double>* milliseconds) {
  std::vector<TensorView> inputs;
  for (Tensor& input : ready.inputs) inputs.push_back(input.view());
  float loss = 0;
  const std::vector<TensorView> outputs = {{&loss, ready.program.outputs[0]}};
  for (int step = 0; step < steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(ready.session->Run(ready.number, inputs, outputs));
    milliseconds->push_back(Milliseconds(std::chrono::steady_clock::now() - begin));
  }
  return absl::OkStatus();
}

// Milliseconds a step of one rank (which has one chunk), in kernels and copies.
struct RankTimes {
  double forward = 0;
  double input_gradient = 0;
  double weight_gradient = 0;
  double end = 0;    // gradients over stages, update
  double waits = 0;  // for other ranks, in all actions
  double kernels() const { return forward + input_gradient + weight_gradient + end; }
};

RankTimes Sum(const std::vector<ActionTime>& before, const std::vector<ActionTime>& after, int steps) {
  RankTimes sum;
  for (size_t i = 0; i < after.size(); ++i) {
    const double busy = Milliseconds(after[i].busy - before[i].busy) / steps;
    sum.waits += Milliseconds(after[i].total - before[i].total) / steps - busy;
    switch (after[i].action.kind) {
      case ActionKind::kForward:
        sum.forward += busy;
        break;
      case ActionKind::kBackwardInput:
        sum.input_gradient += busy;
        break;
      case ActionKind::kBackwardWeight:
      case ActionKind::kBackward:  // where nobody waits for B, it is not told apart from W
        sum.weight_gradient += busy;
        break;
      default:
        sum.end += busy;
    }
  }
  return sum;
}

// The simulated step from measured times, each micro-batch taking its share.
absl::StatusOr<double> SimulatedStep(const std::vector<RankTimes>& ranks, const std::string& schedule_name,
                                     int micro_batches) {
  ASSIGN_OR_RETURN(const Schedule schedule, MakeSchedule(schedule_name, kStages, micro_batches, 1));
  ScheduleCosts costs;
  double end = 0;
  for (const RankTimes& rank : ranks) {
    costs.chunks.push_back(
        {rank.forward / micro_batches, rank.input_gradient / micro_batches, rank.weight_gradient / micro_batches, 1.0});
    end = std::max(end, rank.end);
  }
  for (int chunk = 0; chunk + 1 < kStages; ++chunk) {
    costs.edges.push_back({{ChunkId(chunk), ChunkId(chunk + 1), true}, 0.0});
    costs.edges.push_back({{ChunkId(chunk + 1), ChunkId(chunk), false}, 0.0});
  }
  ASSIGN_OR_RETURN(const Simulation simulation, Simulate(schedule, costs));
  return simulation.step_time + end;
}

absl::Status RunBenchmark() {
  const std::string schedule = absl::GetFlag(FLAGS_schedule);
  const int steps = absl::GetFlag(FLAGS_steps);
  if (steps < 1) return absl::InvalidArgumentError(absl::StrCat("--steps=", steps, "; give 1 or more"));
  ASSIGN_OR_RETURN(Ready ready, MakeReady(absl::GetFlag(FLAGS_workload), schedule));
  std::vector<double> milliseconds;
  RETURN_IF_ERROR(RunSteps(ready, kWarmUp, &milliseconds));
  const auto before = ready.session->Times(ready.number);
  milliseconds.clear();
  RETURN_IF_ERROR(RunSteps(ready, steps, &milliseconds));
  const auto after = ready.session->Times(ready.number);

  std::sort(milliseconds.begin(), milliseconds.end());
  const double median = milliseconds[milliseconds.size() / 2];
  std::printf("%s, %s, %d stages x 1 thread, %d steps\n", absl::GetFlag(FLAGS_workload).c_str(), schedule.c_str(),
              kStages, steps);
  std::printf("ms a step: min %.3f, median %.3f, max %.3f\n", milliseconds.front(), median, milliseconds.back());
  std::vector<RankTimes> ranks;
  for (size_t i = 0; i < after.size(); ++i) {
    ranks.push_back(Sum(before[i], after[i], steps));
    std::printf("rank %zu, mean ms a step: kernels %.3f (F %.3f, B %.3f, W %.3f, end of step %.3f), waits %.3f\n", i,
                ranks[i].kernels(), ranks[i].forward, ranks[i].input_gradient, ranks[i].weight_gradient, ranks[i].end,
                ranks[i].waits);
  }
  ASSIGN_OR_RETURN(const double simulated, SimulatedStep(ranks, schedule, ready.program.ranks[0].micro_batches));
  std::printf("simulated from these F, B and W: %.3f ms; measured median / simulated: %.2f\n", simulated,
              median / simulated);
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipeloom

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Times steps of one workload on two stages in one process.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = pipeloom::RunBenchmark();
  if (status.ok()) return 0;
  std::fprintf(stderr, "step: %s\n", std::string(status.message()).c_str());
  return 1;
}
