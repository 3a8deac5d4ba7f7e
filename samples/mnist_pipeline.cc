// Trains a network of two stages on handwritten digits:
//
//   stage 0: flatten, layer1, relu1  |  stage 1: layer2, relu2, layer3, loss
//
// A batch is divided into micro-batches, so that both stages have work at the same time. The losses and the weights
// are the same, bit for bit, for every number of stages, every schedule, and for stages that are threads or processes.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/digest.h"
#include "kernels/base/status_macros.h"
#include "plugin/cells/batches.h"
#include "plugin/cells/trainer.h"
#include "plugin/launch/launch.h"
#include "samples/mnist_network.h"
#include "samples/mnist_options.h"
#include "samples/training_log.h"

namespace pipeloom {
namespace {

// Ranks may read other files: inputs are used on the first stage and labels on the last.
std::string DigestOf(const MnistDataset& digits) {
  const auto text = [](const IdxArray& array) {
    return absl::string_view(array.elements.data(), array.elements.size());
  };
  return absl::StrCat(digits.size(), " with digest ",
                      absl::Hex(Digest(text(digits.images)) ^ Digest(text(digits.labels))));
}

absl::StatusOr<std::unique_ptr<Trainer>> MakeTrainer(const MnistOptions& options, const MnistDataset& digits,
                                                     std::unique_ptr<Transport> transport) {
  auto network = std::make_shared<Network>(options.print_activations);
  network->SetSeed(options.seed);

  ASSIGN_OR_RETURN(StageConfig stage_config, SpreadOverStages(*network, options.stages));
  if (options.schedule == "interleaved") stage_config.clear();  // which deals the cells out to the stages in turn
  auto with_loss = std::make_shared<WithLossCell>(network, std::make_shared<CrossEntropyLoss>());
  const Pipeline pipeline(with_loss, options.micro_batches, stage_config, options.loss_reduction);

  TrainerOptions trainer_options;
  trainer_options.stages = options.stages;
  trainer_options.schedule = options.schedule;
  trainer_options.deadline = std::chrono::seconds(options.deadline);
  trainer_options.dump_dir = options.dump_dir;
  trainer_options.output_broadcast = true;  // rank 0 counts the digits that the last stage reads
  trainer_options.configuration = {{"batch_size", absl::StrCat(options.batch_size)},
                                   {"epochs", absl::StrCat(options.epochs)},
                                   {"steps", absl::StrCat(options.steps)},
                                   {"seed", absl::StrCat(options.seed)},
                                   {"lr", absl::StrCat(options.lr)},
                                   {"optimizer", options.optimizer},
                                   {"print_activations", options.print_activations ? "true" : "false"},
                                   {"saves weights", options.weights_out.empty() ? "no" : "yes"},
                                   {"digits", DigestOf(digits)}};
  if (options.optimizer == "adam") {
    return Trainer::Create(pipeline, Adam(network->TrainableParams(), options.lr), trainer_options,
                           std::move(transport));
  }
  return Trainer::Create(pipeline, SGD(network->TrainableParams(), options.lr), trainer_options, std::move(transport));
}

absl::Status TrainEpochs(const MnistOptions& options, const MnistDataset& digits, Trainer& trainer,
                         const World& world) {
  const int64_t steps_an_epoch = digits.size() / options.batch_size;
  MnistBatch batch(digits, options.batch_size);
  // What can be refused is refused here, before the first step.
  RETURN_IF_ERROR(trainer.CompileStep({batch.images.view(), batch.labels.view()}));
  RETURN_IF_ERROR(trainer.CompilePredict({batch.images.view()}));
  TrainingLog log = TrainingLog::Silent();
  if (world.rank == RankId(0)) {
    ASSIGN_OR_RETURN(log, TrainingLog::Open(options.losses_out, /*draws_bar=*/!world.has_processes));
  }

  int64_t steps_left = options.steps >= 0 ? options.steps : steps_an_epoch * options.epochs;
  for (int epoch = 0; epoch < options.epochs && steps_left > 0; ++epoch) {
    const std::vector<int64_t> order = ShuffledOrder(digits.size(), options.seed, epoch);
    for (int64_t step = 0; step < steps_an_epoch && steps_left > 0; ++step, --steps_left) {
      FillBatch(digits, order, step * options.batch_size, batch);
      const absl::StatusOr<float> loss = trainer.Step({batch.images.view(), batch.labels.view()});
      if (!loss.ok()) {
        RETURN_IF_ERROR(log.Close());
        return loss.status();
      }
      RETURN_IF_ERROR(log.Step(epoch, step, steps_an_epoch, *loss));
    }
  }
  return log.Close();
}

// How many of the digits the network reads right.
absl::StatusOr<int64_t> CountRight(const MnistOptions& options, const MnistDataset& digits, Trainer& trainer) {
  std::vector<int64_t> order(static_cast<size_t>(digits.size()));
  std::iota(order.begin(), order.end(), 0);
  MnistBatch batch(digits, options.batch_size);
  int64_t right = 0;
  for (int64_t begin = 0; begin < digits.size(); begin += options.batch_size) {
    FillBatch(digits, order, begin, batch);
    ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, trainer.Predict({batch.images.view()}));
    const int64_t classes = outputs[0].type().shape[1];
    for (int64_t row = 0; row < batch.valid; ++row) {
      const float* logits = outputs[0].data<float>() + row * classes;
      if (std::max_element(logits, logits + classes) - logits == batch.labels.data<int32_t>()[row]) ++right;
    }
  }
  return right;
}

// The training set's labels are checked as they are used; those of the test set would only count as misread.
absl::Status CheckTestSet(const MnistDataset& training, const MnistDataset& test) {
  if (test.rows() != training.rows() || test.columns() != training.columns()) {
    return absl::InvalidArgumentError(absl::StrCat("the test digits have ", test.rows(), " x ", test.columns(),
                                                   " pixels, the training digits ", training.rows(), " x ",
                                                   training.columns(), "; give both from one data set"));
  }
  for (size_t i = 0; i < test.labels.elements.size(); ++i) {
    const int label = static_cast<unsigned char>(test.labels.elements[i]);
    if (label < kClasses) continue;
    return absl::OutOfRangeError(absl::StrCat("label ", label, " of test digit ", i, " is not one of the ", kClasses,
                                              " classes; repair the label file"));
  }
  return absl::OkStatus();
}

absl::Status Run(const MnistOptions& options, World& world) {
  const bool reports = world.rank == RankId(0);
  if (reports) RETURN_IF_ERROR(CheckOutputs(options));
  ASSIGN_OR_RETURN(const MnistDataset training, LoadMnist(options.data_dir + "/train", "train"));
  ASSIGN_OR_RETURN(const MnistDataset test, LoadMnist(options.data_dir + "/test", "t10k"));
  if (options.batch_size > training.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--batch_size=", options.batch_size, " is more than the ",
                                                   training.size(), " training digits; give a smaller one"));
  }
  RETURN_IF_ERROR(CheckTestSet(training, test));
  ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, MakeTrainer(options, training, std::move(world.transport)));
  RETURN_IF_ERROR(TrainEpochs(options, training, *trainer, world));
  if (!options.weights_out.empty()) RETURN_IF_ERROR(trainer->SaveCheckpoint(options.weights_out));
  ASSIGN_OR_RETURN(const int64_t right, CountRight(options, test, *trainer));
  if (!reports) return absl::OkStatus();
  std::printf("test accuracy is %.4f (%lld of %lld digits)\n",
              static_cast<double>(right) / static_cast<double>(test.size()), static_cast<long long>(right),
              static_cast<long long>(test.size()));
  return absl::OkStatus();
}

// Where the digits lie that come with the sample: in the program's runfiles, which a test has elsewhere.
std::string DigitsFolder() {
  const char* runfiles = std::getenv("RUNFILES_DIR");
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  return absl::StrCat(runfiles != nullptr ? runfiles : program + ".runfiles", "/pipeloom/third_party/mnist_digits");
}

// Where the user typed the command; `bazel run` starts programs elsewhere.
std::string WorkingDirectory() {
  const char* typed_in = std::getenv("BUILD_WORKING_DIRECTORY");
  return typed_in != nullptr ? typed_in : "";
}

absl::Status Start(int argc, char** argv, World& world) {
  ASSIGN_OR_RETURN(const MnistOptions options, ReadOptions(argc, argv, WorkingDirectory(), DigitsFolder()));
  // Processes may take longer to start than a step may take.
  const std::chrono::seconds start = std::max(std::chrono::seconds(60), std::chrono::seconds(options.deadline));
  RETURN_IF_ERROR(JoinWorld(argc, argv, {options.transport, options.stages, start}, &world));
  return Run(options, world);
}

}  // namespace
}  // namespace pipeloom

int main(int argc, char** argv) {
  pipeloom::World world;
  const absl::Status status = pipeloom::Start(argc, argv, world);
  return pipeloom::EndRank(status, "mnist_pipeline", world);
}
