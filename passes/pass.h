#ifndef PASSES_PASS_H_
#define PASSES_PASS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "passes/ir/module.h"

namespace pipeloom {

// One step of the compiler. It has no memory and no options: what it needs stands in the module.
class Pass {
 public:
  virtual ~Pass() = default;
  virtual absl::string_view name() const = 0;

  // Changes the module; returns whether its text is another one afterwards. A user's mistake is a Status that names the
  // node, its cell and the rule.
  virtual absl::StatusOr<bool> Run(Module& module) const = 0;

  // What holds after this pass, beyond what Verify demands of every module.
  virtual absl::Status CheckAfter(const Module& /*module*/) const { return absl::OkStatus(); }
};

}  // namespace pipeloom

#endif  // PASSES_PASS_H_
