#include "samples/training_log.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace pipeloom {
namespace {

constexpr int64_t kStepsALine = 10;
constexpr int64_t kBarWidth = 40;

}  // namespace

absl::StatusOr<TrainingLog> TrainingLog::Open(const std::string& losses_path, bool draws_bar) {
  TrainingLog log;
  log.path_ = losses_path;
  log.bar_ = draws_bar && isatty(STDOUT_FILENO) == 1;
  if (losses_path.empty()) return log;
  log.losses_.reset(std::fopen(losses_path.c_str(), "w"));
  if (log.losses_ == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", losses_path));
  std::setvbuf(log.losses_.get(), nullptr, _IOLBF, BUFSIZ);  // whole lines, also if the process is killed
  return log;
}

TrainingLog TrainingLog::Silent() {
  TrainingLog log;
  log.silent_ = true;
  return log;
}

absl::Status TrainingLog::Step(int epoch, int64_t step, int64_t steps, float loss) {
  if (silent_) return absl::OkStatus();
  // Nine digits tell any two floats apart.
  if (losses_ != nullptr && std::fprintf(losses_.get(), "%.9g\n", loss) < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path_));
  }
  if (step % kStepsALine == 0) {
    ClearBar();
    std::printf("epoch: %d step: %lld, loss is %.6f\n", epoch, static_cast<long long>(step), loss);
  }
  DrawBar(epoch, step + 1, steps);
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status TrainingLog::Close() {
  ClearBar();
  std::fflush(stdout);
  if (losses_ != nullptr && std::fclose(losses_.release()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path_));
  }
  return absl::OkStatus();
}

void TrainingLog::DrawBar(int epoch, int64_t done, int64_t steps) const {
  if (!bar_) return;
  const int64_t filled = kBarWidth * done / steps;
  std::printf("\repoch %d [%s%s] %lld/%lld", epoch, std::string(static_cast<size_t>(filled), '=').c_str(),
              std::string(static_cast<size_t>(kBarWidth - filled), ' ').c_str(), static_cast<long long>(done),
              static_cast<long long>(steps));
}

void TrainingLog::ClearBar() const {
  if (bar_) std::printf("\r\033[K");
}

}  // namespace pipeloom
