#include "tests/kernels/reference.h"

#include <cstddef>
#include <utility>

#include "kernels/base/status_macros.h"
#include "passes/ir/op_table.h"

namespace pipeloom {
namespace {

// Where the results stand among the kernel's operands.
std::vector<size_t> ResultPlaces(const KernelSpec& spec) {
  std::vector<size_t> places;
  for (size_t i = 0; i < spec.outputs.size(); ++i) places.push_back(spec.inputs.size() + i);
  for (int operand : FindOp(spec.op)->writes) {
    if (operand < static_cast<int>(spec.inputs.size())) places.push_back(static_cast<size_t>(operand));
  }
  return places;
}

}  // namespace

void RunReference(const KernelSpec& spec, std::vector<RefTensor>& operands) {
  std::vector<RefTensor> inputs(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(spec.inputs.size()));
  // The kernel adds to what its output holds.
  if (spec.op == "grad_accumulate") inputs.push_back(operands.back());
  std::vector<RefTensor> results = RunReference(spec.op, inputs, spec.attributes, spec.outputs);
  const std::vector<size_t> places = ResultPlaces(spec);
  PIPELOOM_CHECK(results.size() == places.size(), spec.op, " has ", results.size(), " results");
  for (size_t i = 0; i < places.size(); ++i) operands[places[i]] = std::move(results[i]);
}

}  // namespace pipeloom
