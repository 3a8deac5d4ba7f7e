#ifndef PASSES_PASS_PIPELINE_H_
#define PASSES_PASS_PIPELINE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/pass.h"

namespace pipeloom {

// Runs one pass, then Verify and the pass's CheckAfter. Returns what the pass returned; errors begin with
// "pass <name>: ", and those of the checks are Internal, since they tell of a fault of the pass.
absl::StatusOr<bool> RunPass(const Pass& pass, Module& module);

// Passes in their order, with the checks between all of them.
class PassPipeline {
 public:
  using Observer = std::function<void(const Pass& pass, const Module& module)>;

  explicit PassPipeline(std::vector<std::unique_ptr<Pass>> passes) : passes_(std::move(passes)) {}

  // Verifies the module, then runs the passes up to the first error; the module then is as that pass left it. Where
  // `dump_dir` is not empty, the directory is made and the text before the first pass and after each of them is written
  // there, as 00_input.txt, 01_<pass>.txt, ...; a file is never seen half-written. `after` sees the module after each
  // pass.
  absl::Status Run(Module& module, const std::string& dump_dir, const Observer& after = nullptr) const;

 private:
  std::vector<std::unique_ptr<Pass>> passes_;
};

}  // namespace pipeloom

#endif  // PASSES_PASS_PIPELINE_H_
