#ifndef PLUGIN_RUNTIME_SESSION_CHECKS_H_
#define PLUGIN_RUNTIME_SESSION_CHECKS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/base/buffer.h"
#include "kernels/base/ids.h"
#include "plugin/runtime/compile.h"

namespace pipeloom {

// What all sessions refuse, in the same words.

// InvalidArgument unless the tensors have these types, and data. `what` is "input" or "output".
absl::Status CheckTensors(absl::string_view what, absl::Span<const TensorView> given,
                          const std::vector<TensorType>& wanted);
// InvalidArgument unless `value` can be the value of a parameter of this type.
absl::Status CheckParameterValue(const std::string& name, const TensorType& type, const TensorView& value);
absl::Status NoSuchParameterError(const std::string& name);

// Where the programs of a session hold and update each parameter.
class ParameterPlaces {
 public:
  // Of the next program.
  void Add(const CompiledProgram& program);

  // FailedPrecondition, naming parameter and rank, where a step of program `number` would update a parameter, but not
  // on a rank where another program has it, which would go on with the old value.
  const absl::Status& MayRun(int number) const { return may_run_[static_cast<size_t>(number)]; }

 private:
  using Ranks = std::map<std::string, std::set<RankId>>;  // by parameter

  absl::Status Judge(const Ranks& updated) const;

  Ranks held_;
  std::vector<Ranks> updated_;         // by each program
  std::vector<absl::Status> may_run_;  // likewise
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_SESSION_CHECKS_H_
