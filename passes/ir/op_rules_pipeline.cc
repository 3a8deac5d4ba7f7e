#include <algorithm>

#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

absl::StatusOr<std::vector<TensorType>> SliceShape(OperandTypes operands, const AttributeMap& attributes) {
  const int64_t axis = GetInt(attributes, "axis", 0);
  const int64_t count = GetInt(attributes, "count", 1);
  RETURN_IF_ERROR(WantAtLeast(attributes, "count", 1, 1));
  RETURN_IF_ERROR(WantAxis(operands, axis));
  TensorType result = operands[0];
  if (result.shape[axis] % count != 0) {
    return Refuse("extent ", result.shape[axis], " of axis ", axis, " of ", Describe(operands, 0),
                  " does not divide into ", count, " micro-batches; give a multiple of ", count,
                  " or another number of micro-batches");
  }
  result.shape[axis] /= count;
  return std::vector<TensorType>{std::move(result)};
}

absl::StatusOr<std::vector<TensorType>> MergeShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantAtLeast(attributes, "count", 1, 1));
  RETURN_IF_ERROR(WantOneOf(attributes, "reduce", "", {"sum", "concat"}));
  TensorType result = operands[0];
  if (GetString(attributes, "reduce", "") == "sum") {
    RETURN_IF_ERROR(WantDType(operands, 0, DType::kFloat32));
  } else {
    RETURN_IF_ERROR(WantAxis(operands, 0));
    const int64_t count = GetInt(attributes, "count", 1);
    if (count > kMostElements / std::max<int64_t>(result.num_elements(), 1)) {
      return Refuse(count, " times ", Describe(operands, 0), " is more than 2^60 elements");
    }
    result.shape[0] *= count;
  }
  return std::vector<TensorType>{std::move(result)};
}

absl::StatusOr<std::vector<TensorType>> AccumulateShape(OperandTypes operands, const AttributeMap& attributes) {
  RETURN_IF_ERROR(WantDType(operands, 0, DType::kFloat32));
  RETURN_IF_ERROR(WantAtLeast(attributes, "count", 1, 1));
  RETURN_IF_ERROR(WantAtLeast(attributes, "group", 1, 1));
  return std::vector<TensorType>{operands[0]};
}

absl::StatusOr<std::vector<TensorType>> NoResult(OperandTypes, const AttributeMap&) {
  return std::vector<TensorType>();
}

}  // namespace

std::vector<OpDef> PipelineOps() {
  const OpTraits view{/*elementwise=*/false, /*contracts=*/false,
                      /*view=*/true};
  const OpTraits typed{/*elementwise=*/false, /*contracts=*/false,
                       /*view=*/false, /*typed=*/true};
  const AttributeSpec count{"count", AttributeType::kInt, /*required=*/true};
  const AttributeSpec channel{"channel", AttributeType::kInt, /*required=*/true};
  const AttributeSpec slots{"slots", AttributeType::kInt};
  return {
      {"micro_batch_slice", 1, 1, {{"axis", AttributeType::kInt}, count}, SliceShape, nullptr, nullptr, view},
      {"micro_batch_merge", 1, 1, {{"reduce", AttributeType::kString, /*required=*/true}, count}, MergeShape},
      {"grad_accumulate", 1, 1, {count, {"group", AttributeType::kInt}}, AccumulateShape, nullptr, FlopsOfResult},
      {"send", 1, 1, {channel, {"to", AttributeType::kInt, /*required=*/true}, slots}, NoResult},
      {"receive",
       0,
       0,
       {channel,
        {"from", AttributeType::kInt, /*required=*/true},
        slots,
        {"released_after", AttributeType::kString},
        {"group", AttributeType::kInt}},
       nullptr,
       nullptr,
       nullptr,
       typed},
      {"print", 1, 1, {{"text", AttributeType::kString}}, NoResult},
      {"call",
       0,
       -1,
       {{"block", AttributeType::kString, /*required=*/true}, {"cells", AttributeType::kString}},
       nullptr,
       nullptr,
       nullptr,
       typed},
      {"step_output", 1, 1, {{"index", AttributeType::kInt, /*required=*/true}}, NoResult},
  };
}

}  // namespace pipeloom::op_rules
