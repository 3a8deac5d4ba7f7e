#ifndef SAMPLES_MNIST_OPTIONS_H_
#define SAMPLES_MNIST_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace pipeloom {

// The command line of mnist_pipeline; the flags in mnist_options.cc have the defaults and say what each is.
struct MnistOptions {
  int stages;
  std::string transport;
  int deadline;  // seconds
  int micro_batches;
  int batch_size;
  std::string schedule;
  int epochs;
  int64_t steps;  // -1: as many as the epochs have
  uint64_t seed;
  double lr;
  std::string optimizer;
  std::string loss_reduction;
  std::string losses_out;
  std::string weights_out;
  bool print_activations;
  std::string dump_dir;
  std::string data_dir;
};

// Reads the command line; ends the process for --help and for flags that do not parse. Paths are taken relative to
// `working_directory` ("": that of the process); `digits` is the data folder where none is given. InvalidArgument for
// values that cannot be.
absl::StatusOr<MnistOptions> ReadOptions(int argc, char** argv, const std::string& working_directory,
                                         const std::string& digits);

// Refuses files that could not be written at the end; for the rank that writes them.
absl::Status CheckOutputs(const MnistOptions& options);

}  // namespace pipeloom

#endif  // SAMPLES_MNIST_OPTIONS_H_
