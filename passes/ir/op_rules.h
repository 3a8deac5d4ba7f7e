#ifndef PASSES_IR_OP_RULES_H_
#define PASSES_IR_OP_RULES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "passes/ir/op_table.h"

// What the families of rows share; OpTable() puts the families together.
// Internal to passes/ir.
namespace pipeloom::op_rules {

std::vector<OpDef> MatmulOps();
std::vector<OpDef> ElementwiseOps();
std::vector<OpDef> MathOps();
std::vector<OpDef> LossOps();
std::vector<OpDef> ReductionOps();
std::vector<OpDef> NormalizationOps();
std::vector<OpDef> MovementOps();
std::vector<OpDef> GatherOps();
std::vector<OpDef> LogicalOps();
std::vector<OpDef> DropoutOps();
std::vector<OpDef> PipelineOps();
std::vector<OpDef> UpdateOps();

// The most elements of a tensor: neither a product of extents nor a number of bytes overflows.
inline constexpr int64_t kMostElements = int64_t{1} << 60;
// Whether all extents are 0 or more, and their product, zeros taken as ones, is at most kMostElements.
bool HasSaneExtents(const Shape& shape);

// "operand 0 f32[8,784]"
std::string Describe(OperandTypes operands, int operand);

template <typename... Args>
absl::Status Refuse(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

absl::Status WantDType(OperandTypes operands, int operand, DType dtype);
absl::Status WantRank(OperandTypes operands, int operand, int rank);
// `role` says what the operand is, such as "the target".
absl::Status WantType(OperandTypes operands, int operand, const TensorType& type, absl::string_view role);
// An axis of operand 0.
absl::Status WantAxis(OperandTypes operands, int64_t axis);
absl::Status WantAtLeast(const AttributeMap& attributes, absl::string_view name, int64_t fallback, int64_t least);
absl::Status WantOneOf(const AttributeMap& attributes, absl::string_view name, absl::string_view fallback,
                       const std::vector<absl::string_view>& choices);

// The shape that operands `a` and `b` broadcast to, as NumPy does.
absl::StatusOr<Shape> BroadcastOf(OperandTypes operands, int a, int b);

// The rule of an op whose one result has the type of operand 0.
absl::StatusOr<std::vector<TensorType>> LikeOperand0(OperandTypes operands, const AttributeMap& attributes);
// The same, for f32 operands that are all of one type.
absl::StatusOr<std::vector<TensorType>> LikeFloatOperands(OperandTypes operands, const AttributeMap& attributes);

// The rule of an op of two numbers: they broadcast, and their type is that of the result.
absl::StatusOr<std::vector<TensorType>> BroadcastShape(OperandTypes operands, const AttributeMap& attributes);
// The same, for f32 alone.
absl::StatusOr<std::vector<TensorType>> FloatBroadcastShape(OperandTypes operands, const AttributeMap& attributes);

// Sums `gradient` over the axes along which a value of shape `shape` was
// broadcast to the gradient's shape.
Value* ReduceTo(GraphBuilder& builder, Value* gradient, const Shape& shape);

std::vector<int64_t> ToInts(const Shape& shape);
int64_t FlopsOfResult(const Node& node);   // one for each element of the result
int64_t FlopsOfOperand(const Node& node);  // one for each element of operand 0

}  // namespace pipeloom::op_rules

#endif  // PASSES_IR_OP_RULES_H_
