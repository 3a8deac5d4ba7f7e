// Runs a fuzz entry on random edits of its sound inputs, for compilers that come without libFuzzer:
//
//   bazel run --config=asan //tests/fuzz:text_fuzz -- --seconds=60 --seed=7
//   bazel run --config=asan //tests/fuzz:text_fuzz -- /tmp/fuzz_failure     (that input again)
//
// An input at which the process ends, or that takes more than ten seconds of processor time, is written to a file.

#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/file_io.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

ABSL_FLAG(double, seconds, 60, "how long to run");
ABSL_FLAG(uint64_t, seed, 1, "the inputs follow from it");
ABSL_FLAG(std::string, failure_file, "",
          "where to write an input that fails; default: fuzz_failure in the tests' folder");
ABSL_FLAG(std::string, write_inputs, "", "only write the sound inputs to this folder, as a corpus for libFuzzer");

// Of the sanitizers, which end a process without a signal; absent in a plain build.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace pipeloom {
namespace {

constexpr time_t kSecondsAnInput = 10;

// For the handlers, which may do no more than write.
std::string* const failure_file = new std::string;
std::string* const current_input = new std::string;

void SaveCurrentInput() {
  const int file = open(failure_file->c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  const bool written = file >= 0 && write(file, current_input->data(), current_input->size()) ==
                                        static_cast<ssize_t>(current_input->size());
  for (const char* part :
       {"\nfuzz: this input ended the process: ", written ? failure_file->c_str() : "(not saved)", "\n"}) {
    if (write(STDERR_FILENO, part, strlen(part)) < 0) return;
  }
}

void OnSignal(int signal_number) {
  SaveCurrentInput();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void WatchForTheEnd() {
  for (const int signal_number : {SIGABRT, SIGPROF}) signal(signal_number, OnSignal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(SaveCurrentInput);  // on a bad access, too
    return;
  }
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(signal_number, OnSignal);
}

// Sends SIGPROF after that much processor time, not after a wait for the processor; 0 calls it off.
void LimitSeconds(time_t seconds) {
  const itimerval limit = {{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

void RunOne(std::string input) {
  *current_input = std::move(input);
  LimitSeconds(kSecondsAnInput);
  // A buffer of its own, so that a read beyond its end is seen.
  const std::vector<uint8_t> bytes(current_input->begin(), current_input->end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  LimitSeconds(0);
}

int RunFiles(const std::vector<std::string>& files) {
  for (const std::string& name : files) {
    absl::StatusOr<std::string> bytes = ReadFile(name);
    if (!bytes.ok()) {
      std::fprintf(stderr, "%s\n", bytes.status().ToString().c_str());
      return 1;
    }
    RunOne(*std::move(bytes));
    std::printf("%s is no fault\n", name.c_str());
  }
  return 0;
}

int WriteInputs(const std::string& folder) {
  const std::vector<std::string> inputs = SoundInputs();
  if (inputs.empty()) {
    std::fprintf(stderr, "fuzz: there is no sound input to begin with\n");
    return 1;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const absl::Status status = WriteFileAtomically(absl::StrCat(folder, "/", i), {inputs[i]});
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}

int RunEdits(double seconds, uint64_t seed) {
  const std::vector<std::string> inputs = SoundInputs();
  for (const std::string& input : inputs) RunOne(input);
  std::printf("fuzz: seed %llu, %.0f s, %zu sound inputs\n", static_cast<unsigned long long>(seed), seconds,
              inputs.size());
  std::fflush(stdout);
  Mutator mutator(inputs, seed);
  int64_t runs = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (; std::chrono::steady_clock::now() < end; ++runs) RunOne(mutator.Next());
  std::printf("fuzz: %lld inputs\n", static_cast<long long>(runs));
  return runs == 0 ? 1 : 0;
}

int Main(int argc, char** argv) {
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  *failure_file = absl::GetFlag(FLAGS_failure_file);
  if (failure_file->empty()) {
    const char* folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
    *failure_file = absl::StrCat(folder == nullptr ? "/tmp" : folder, "/fuzz_failure");
  }
  WatchForTheEnd();
  if (const std::string folder = absl::GetFlag(FLAGS_write_inputs); !folder.empty()) return WriteInputs(folder);
  if (rest.size() > 1) return RunFiles({rest.begin() + 1, rest.end()});
  return RunEdits(absl::GetFlag(FLAGS_seconds), absl::GetFlag(FLAGS_seed));
}

}  // namespace
}  // namespace pipeloom

int main(int argc, char** argv) { return pipeloom::Main(argc, argv); }
