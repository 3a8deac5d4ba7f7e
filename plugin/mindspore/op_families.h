#ifndef PLUGIN_MINDSPORE_OP_FAMILIES_H_
#define PLUGIN_MINDSPORE_OP_FAMILIES_H_

#include <map>
#include <string>

#include "plugin/mindspore/import_ops.h"

namespace pipeloom::ms {

// What an op of MindSpore's becomes, by its name. The comments beside them say MindSpore's operands.
using Rewrite = Item (*)(const OpImport& import);
using Rewrites = std::map<std::string, Rewrite>;

void AddElementwiseOps(Rewrites* rewrites);
void AddMovementOps(Rewrites* rewrites);
void AddNetworkOps(Rewrites* rewrites);
void AddUpdateOps(Rewrites* rewrites);

// The axis that constant `operand` names, counted from 0, of a tensor of this type.
int64_t AxisAt(const OpImport& import, size_t operand, const Type& type);

// Of ops that only have another name here.
template <const char* const& kOp>
Item Unary(const OpImport& import) {
  return Item::Of(import.Emit(kOp, {import.TensorAt(0)}, import.ResultType()));
}
template <const char* const& kOp>
Item Binary(const OpImport& import) {
  return Item::Of(import.Emit(kOp, {import.TensorAt(0), import.TensorAt(1)}, import.ResultType()));
}

}  // namespace pipeloom::ms

#endif  // PLUGIN_MINDSPORE_OP_FAMILIES_H_
