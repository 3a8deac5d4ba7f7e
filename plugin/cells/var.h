#ifndef PLUGIN_CELLS_VAR_H_
#define PLUGIN_CELLS_VAR_H_

#include "absl/strings/string_view.h"
#include "passes/ir/graph.h"
#include "plugin/cells/parameter.h"

namespace pipeloom {

// What a cell's Construct works on: a value of the graph that is being built, with the shape of one micro-batch. A
// light handle, valid during Construct. After a first mistake every operation gives a Var without a value, and the
// build returns that mistake; so Construct needs no error handling of its own.
class Var {
 public:
  Var() = default;
  // The parameter's value. Implicit, so that a parameter is an operand like any other.
  Var(const ParameterPtr& parameter);  // NOLINT(google-explicit-constructor)

  bool has_value() const { return value_ != nullptr; }
  TensorType type() const { return has_value() ? value_->type : TensorType{}; }
  int rank() const { return type().rank(); }
  // Extent of `axis`; a negative axis counts from the last. Refuses an axis that there is none of, and gives 1.
  int64_t dim(int axis) const;
  // Makes `why` the mistake that the build returns, with the path of the cell.
  Var Refuse(absl::string_view why) const;

  BuildContext* context() const { return context_; }
  Value* value() const { return value_; }

 private:
  friend class BuildContext;

  BuildContext* context_ = nullptr;
  Value* value_ = nullptr;
};

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_VAR_H_
