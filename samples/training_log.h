#ifndef SAMPLES_TRAINING_LOG_H_
#define SAMPLES_TRAINING_LOG_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pipeloom {

// What a training run says: a line every ten steps, a progress bar where stdout is a terminal, and each loss in a file.
class TrainingLog {
 public:
  // Makes the file `losses_path`, "" for none. `draws_bar`: where stdout is a terminal, which mpirun's is not, though
  // it looks like one.
  static absl::StatusOr<TrainingLog> Open(const std::string& losses_path, bool draws_bar);
  // Says nothing, for ranks that are not the first.
  static TrainingLog Silent();

  // Step `step` of the `steps` of an epoch.
  absl::Status Step(int epoch, int64_t step, int64_t steps, float loss);
  // After the last step.
  absl::Status Close();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  TrainingLog() = default;
  void DrawBar(int epoch, int64_t done, int64_t steps) const;
  void ClearBar() const;

  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> losses_;
  bool silent_ = false;
  bool bar_ = false;
};

}  // namespace pipeloom

#endif  // SAMPLES_TRAINING_LOG_H_
