// train_cases DIGITS OUT: trains each case for 20 steps and writes OUT/<case>.safetensors with
//   initial.<parameter>, final.<parameter>   the weights before and after
//   losses   f32[20]
//   images   f32[20, 32, 1, 28, 28] and targets [20, 32, ...], the inputs of each step

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "plugin/cells/batches.h"
#include "plugin/cells/losses.h"
#include "plugin/cells/trainer.h"
#include "samples/mnist_network.h"
#include "tests/pytorch/cases.h"

namespace pipeloom {
namespace {

constexpr int64_t kSteps = 20;
constexpr int64_t kBatch = 32;
constexpr int64_t kPixels = 784;
constexpr int64_t kLabels = 10;

TensorType TypeOf(Targets targets) {
  switch (targets) {
    case Targets::kLabels:
      return {DType::kInt32, {kBatch}};
    case Targets::kOneHot:
      return {DType::kFloat32, {kBatch, kLabels}};
    case Targets::kPixels:
      return {DType::kFloat32, {kBatch, kPixels}};
  }
  return {};
}

void FillTarget(Targets targets, const MnistBatch& batch, Tensor& target) {
  const int32_t* labels = batch.labels.data<int32_t>();
  switch (targets) {
    case Targets::kLabels:
      std::copy_n(labels, kBatch, target.data<int32_t>());
      return;
    case Targets::kOneHot:
      std::fill_n(target.data<float>(), kBatch * kLabels, 0.0f);
      for (int64_t row = 0; row < kBatch; ++row) target.data<float>()[row * kLabels + labels[row]] = 1.0f;
      return;
    case Targets::kPixels:
      std::copy_n(batch.images.data<float>(), kBatch * kPixels, target.data<float>());
      return;
  }
}

// Room for the `type` of each step.
Tensor ForAllSteps(TensorType type) {
  type.shape.insert(type.shape.begin(), kSteps);
  return Tensor(std::move(type));
}

void CopyToStep(const Tensor& tensor, int64_t step, Tensor& all_steps) {
  const int64_t bytes = tensor.type().bytes();
  std::copy_n(tensor.data<char>(), bytes, all_steps.data<char>() + step * bytes);
}

absl::Status AddWeights(const Trainer& trainer, const std::string& prefix, TensorMap& record) {
  ASSIGN_OR_RETURN(TensorMap weights, trainer.ReadParameters());
  for (auto& [name, value] : weights) record.emplace(absl::StrCat(prefix, name), std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<TensorMap> Train(const Case& test_case, const MnistDataset& digits) {
  ASSIGN_OR_RETURN(const StageConfig stage_config, SpreadOverStages(*test_case.network, test_case.stages));
  TrainerOptions options;
  options.stages = test_case.stages;
  options.schedule = test_case.schedule;
  options.table = nullptr;
  ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                   Trainer::Create(Pipeline(std::make_shared<WithLossCell>(test_case.network, test_case.loss),
                                            test_case.micro_batches, stage_config, test_case.loss_reduction),
                                   test_case.optimizer, options));
  TensorMap record;
  RETURN_IF_ERROR(AddWeights(*trainer, "initial.", record));
  MnistBatch batch(digits, kBatch);
  Tensor target(TypeOf(test_case.targets));
  Tensor losses = ForAllSteps({DType::kFloat32, {}});
  Tensor images = ForAllSteps(batch.images.type());
  Tensor targets = ForAllSteps(target.type());
  const std::vector<int64_t> order = ShuffledOrder(digits.size(), /*seed=*/0, /*epoch=*/0);
  for (int64_t step = 0; step < kSteps; ++step) {
    FillBatch(digits, order, step * kBatch, batch);
    FillTarget(test_case.targets, batch, target);
    CopyToStep(batch.images, step, images);
    CopyToStep(target, step, targets);
    ASSIGN_OR_RETURN(losses.data<float>()[step], trainer->Step({batch.images.view(), target.view()}));
  }
  record.emplace("losses", std::move(losses));
  record.emplace("images", std::move(images));
  record.emplace("targets", std::move(targets));
  RETURN_IF_ERROR(AddWeights(*trainer, "final.", record));
  return record;
}

absl::Status TrainAll(const std::string& digits_folder, const std::string& out) {
  ASSIGN_OR_RETURN(const MnistDataset digits, LoadMnist(absl::StrCat(digits_folder, "/train"), "train"));
  for (const Case& test_case : PytorchCases()) {
    absl::StatusOr<TensorMap> record = Train(test_case, digits);
    RETURN_IF_ERROR(Annotate(record.status(), test_case.name));
    RETURN_IF_ERROR(WriteSafetensors(absl::StrCat(out, "/", test_case.name, ".safetensors"), *record));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipeloom

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: train_cases DIGITS OUT\n");
    return 2;
  }
  const absl::Status status = pipeloom::TrainAll(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "train_cases: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
