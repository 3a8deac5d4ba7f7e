#include "samples/mnist_options.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "plugin/launch/launch.h"
#include "plugin/runtime/session.h"

ABSL_FLAG(int32_t, stages, 2, "Stages of the pipeline, each a rank; the network's cells are spread over them.");
ABSL_FLAG(std::string, transport, pipeloom::LaunchOptions().transport,
          "What the stages are. threads: threads of this process. mpi, shm: processes; they are started with mpirun "
          "unless a launcher has done so. auto: processes if mpirun started more than one, else threads.");
ABSL_FLAG(int32_t, deadline,
          std::chrono::duration_cast<std::chrono::seconds>(pipeloom::SessionOptions().deadline).count(),
          "Seconds that a stage waits for another one before all end.");
ABSL_FLAG(int32_t, micro_batches, 4, "Micro-batches that a batch is divided into.");
ABSL_FLAG(int32_t, batch_size, 32, "Digits a step.");
ABSL_FLAG(std::string, schedule, "1f1b", "Order of the micro-batches on the stages: gpipe, 1f1b or interleaved.");
ABSL_FLAG(int32_t, epochs, 10, "How often all training digits are gone through.");
ABSL_FLAG(int64_t, steps, -1, "End after this many steps, over all epochs; -1: with the last epoch.");
ABSL_FLAG(uint64_t, seed, 1, "Initial weights and the order of the digits follow from it.");
ABSL_FLAG(double, lr, 1e-2, "Learning rate.");
ABSL_FLAG(std::string, optimizer, "sgd", "sgd or adam.");
ABSL_FLAG(std::string, loss_reduction, "sum",
          "What is printed and minimised: sum or mean of the micro-batches' losses.");
ABSL_FLAG(std::string, losses_out, "", "File for the losses, one a line.");
ABSL_FLAG(std::string, weights_out, "", "File for the trained weights of all stages (safetensors).");
ABSL_FLAG(bool, print_activations, false, "Print what layer1 makes of each micro-batch.");
ABSL_FLAG(std::string, dump_dir, "", "Folder for the graphs before and after each pass.");
ABSL_FLAG(std::string, data_dir, "",
          "Folder with train/train-images-idx3-ubyte, train/train-labels-idx1-ubyte, test/t10k-images-idx3-ubyte and "
          "test/t10k-labels-idx1-ubyte; default: 5,000 digits that come with the sample.");

namespace pipeloom {
namespace {

constexpr char kUsage[] =
    "Trains a small network on handwritten digits, as a pipeline of stages.\n"
    "bazel run -c opt //samples:mnist_pipeline -- --stages=3 --schedule=gpipe";

std::string From(const std::string& working_directory, const std::string& path) {
  if (working_directory.empty() || path.empty() || path[0] == '/') return path;
  return absl::StrCat(working_directory, "/", path);
}

absl::Status CheckAtLeast(absl::string_view flag, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", value, " cannot be; give at least ", least));
}

// Better now than after all epochs.
absl::Status CheckCanWrite(absl::string_view flag, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code is_none;
  if (path.back() == '/' || std::filesystem::is_directory(path, is_none)) {
    return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", path, " is a folder; give a file in it"));
  }
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("--", flag, "=", path, ": nothing can be written to folder ", folder,
                                                 "; make it, or give another"));
}

// Weights are written beside their file and take its name at the end, so that a device would be gone.
absl::Status CheckCanReplace(absl::string_view flag, const std::string& path) {
  std::error_code is_none;
  if (path.empty() || !std::filesystem::exists(path, is_none)) return absl::OkStatus();
  if (std::filesystem::is_regular_file(path, is_none)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", path, " is no regular file; give another"));
}

absl::Status CheckAreTwoFiles(const MnistOptions& options) {
  std::error_code is_none;
  const bool same = std::filesystem::path(options.losses_out).lexically_normal() ==
                        std::filesystem::path(options.weights_out).lexically_normal() ||
                    std::filesystem::equivalent(options.losses_out, options.weights_out, is_none);
  if (options.losses_out.empty() || !same) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--losses_out=", options.losses_out, " and --weights_out=", options.weights_out, " are one file; give two"));
}

absl::Status Check(const MnistOptions& options) {
  RETURN_IF_ERROR(CheckAtLeast("batch_size", options.batch_size, 1));
  RETURN_IF_ERROR(CheckAtLeast("micro_batches", options.micro_batches, 1));
  RETURN_IF_ERROR(CheckAtLeast("epochs", options.epochs, 0));
  RETURN_IF_ERROR(CheckAtLeast("steps", options.steps, -1));
  RETURN_IF_ERROR(CheckAtLeast("deadline", options.deadline, 1));
  if (options.optimizer != "sgd" && options.optimizer != "adam") {
    return absl::InvalidArgumentError(
        absl::StrCat("--optimizer=", options.optimizer, " is unknown; choose one of sgd, adam"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOutputs(const MnistOptions& options) {
  RETURN_IF_ERROR(CheckCanWrite("losses_out", options.losses_out));
  RETURN_IF_ERROR(CheckCanWrite("weights_out", options.weights_out));
  RETURN_IF_ERROR(CheckCanReplace("weights_out", options.weights_out));
  return CheckAreTwoFiles(options);
}

absl::StatusOr<MnistOptions> ReadOptions(int argc, char** argv, const std::string& working_directory,
                                         const std::string& digits) {
  absl::SetProgramUsageMessage(kUsage);
  absl::FlagsUsageConfig usage;
  // --help shows the flags of files for which this holds; as it comes, of a file that is named as the program.
  usage.contains_help_flags = [](absl::string_view file) { return absl::EndsWith(file, "samples/mnist_options.cc"); };
  absl::SetFlagsUsageConfig(usage);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", rest[1], "' is no flag; --help lists the flags"));
  }
  MnistOptions options;
  options.stages = absl::GetFlag(FLAGS_stages);
  options.transport = absl::GetFlag(FLAGS_transport);
  options.deadline = absl::GetFlag(FLAGS_deadline);
  options.micro_batches = absl::GetFlag(FLAGS_micro_batches);
  options.batch_size = absl::GetFlag(FLAGS_batch_size);
  options.schedule = absl::GetFlag(FLAGS_schedule);
  options.epochs = absl::GetFlag(FLAGS_epochs);
  options.steps = absl::GetFlag(FLAGS_steps);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.lr = absl::GetFlag(FLAGS_lr);
  options.optimizer = absl::GetFlag(FLAGS_optimizer);
  options.loss_reduction = absl::GetFlag(FLAGS_loss_reduction);
  options.print_activations = absl::GetFlag(FLAGS_print_activations);
  options.losses_out = From(working_directory, absl::GetFlag(FLAGS_losses_out));
  options.weights_out = From(working_directory, absl::GetFlag(FLAGS_weights_out));
  options.dump_dir = From(working_directory, absl::GetFlag(FLAGS_dump_dir));
  options.data_dir = From(working_directory, absl::GetFlag(FLAGS_data_dir));
  if (options.data_dir.empty()) options.data_dir = digits;
  RETURN_IF_ERROR(Check(options));
  return options;
}

}  // namespace pipeloom
