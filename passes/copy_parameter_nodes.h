#ifndef PASSES_COPY_PARAMETER_NODES_H_
#define PASSES_COPY_PARAMETER_NODES_H_

#include "absl/container/flat_hash_set.h"
#include "passes/pass.h"

namespace pipeloom {

// Gives each use of a node that depends on parameters and constants alone a node of its own:
//
//   %t = transpose(%w)              %t = transpose(%w)
//   %a = matmul(%x, %t)      ->     %a = matmul(%x, %t)
//   %b = matmul(%a, %t)             %t.1 = transpose(%w)
//                                   %b = matmul(%a, %t.1)
//
// So every use of a parameter has a gradient of its own, and each stage makes the value from its copy of the parameter:
// such a value is never sent.
class CopyParameterNodes : public Pass {
 public:
  absl::string_view name() const override { return "copy_parameter_nodes"; }
  absl::StatusOr<bool> Run(Module& module) const override;
};

// The results that depend on parameters and constants alone.
absl::flat_hash_set<const Value*> ParameterOnlyResults(const Graph& graph);

}  // namespace pipeloom

#endif  // PASSES_COPY_PARAMETER_NODES_H_
