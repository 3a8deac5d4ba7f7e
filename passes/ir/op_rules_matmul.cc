#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom::op_rules {
namespace {

constexpr absl::string_view kEpilogueSteps[] = {"bias", "residual", "relu", "gelu_tanh", "gelu_erf", "tanh", "sigmoid"};

std::vector<std::string> EpilogueSteps(const AttributeMap& attributes) {
  return absl::StrSplit(GetString(attributes, "epilogue", ""), '+', absl::SkipEmpty());
}

absl::Status CheckSteps(const std::vector<std::string>& steps) {
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    if (std::find(std::begin(kEpilogueSteps), std::end(kEpilogueSteps), *step) == std::end(kEpilogueSteps)) {
      return Refuse("epilogue step \"", *step, "\" is unknown; give some of ", absl::StrJoin(kEpilogueSteps, ", "),
                    ", joined by '+'");
    }
    if (std::find(steps.begin(), step, *step) != step)
      return Refuse("epilogue step \"", *step, "\" stands there twice");
  }
  return absl::OkStatus();
}

absl::Status CheckEpilogue(OperandTypes operands, const AttributeMap& attributes, const TensorType& result) {
  const std::vector<std::string> steps = EpilogueSteps(attributes);
  RETURN_IF_ERROR(CheckSteps(steps));
  const auto bias = std::find(steps.begin(), steps.end(), "bias");
  const auto residual = std::find(steps.begin(), steps.end(), "residual");
  const bool has_bias = bias != steps.end();
  const bool has_residual = residual != steps.end();
  if (has_bias && has_residual && residual < bias) {
    return Refuse("epilogue \"", GetString(attributes, "epilogue", ""), "\" has residual before bias; put bias first");
  }
  const size_t wanted = 2 + (has_bias ? 1 : 0) + (has_residual ? 1 : 0);
  if (operands.size() != wanted) {
    return Refuse("epilogue \"", GetString(attributes, "epilogue", ""), "\" wants ", wanted, " operands (a, b",
                  has_bias ? ", bias" : "", has_residual ? ", residual" : "", "), not ", operands.size());
  }
  if (has_bias) RETURN_IF_ERROR(WantType(operands, 2, TensorType{result.dtype, {result.shape[1]}}, "the bias"));
  if (has_residual) RETURN_IF_ERROR(WantType(operands, static_cast<int>(wanted) - 1, result, "the residual"));
  return absl::OkStatus();
}

// Of the matrices that the last two axes are, transposed as the attributes say: the type of operand 0 with the
// product's two extents.
absl::StatusOr<TensorType> ProductType(OperandTypes operands, const AttributeMap& attributes) {
  const bool transpose_a = GetBool(attributes, "transpose_a", false);
  const bool transpose_b = GetBool(attributes, "transpose_b", false);
  const int64_t* const a = &operands[0].shape.back() - 1;
  const int64_t* const b = &operands[1].shape.back() - 1;
  const int64_t columns = a[transpose_a ? 0 : 1];
  const int64_t rows = b[transpose_b ? 1 : 0];
  if (columns != rows) {
    return Refuse(Describe(operands, 0), transpose_a ? " transposed" : "", " and ", Describe(operands, 1),
                  transpose_b ? " transposed" : "", " do not multiply: ", columns, " columns against ", rows, " rows");
  }
  TensorType result = operands[0];
  result.shape.end()[-2] = a[transpose_a ? 1 : 0];
  result.shape.end()[-1] = b[transpose_b ? 0 : 1];
  return result;
}

absl::Status WantKernel(const AttributeMap& attributes) {
  return WantOneOf(attributes, "kernel", "", {"", "brg", "rows"});
}

absl::StatusOr<std::vector<TensorType>> MatmulShape(OperandTypes operands, const AttributeMap& attributes) {
  for (int i = 0; i < 2; ++i) {
    RETURN_IF_ERROR(WantDType(operands, i, DType::kFloat32));
    RETURN_IF_ERROR(WantRank(operands, i, 2));
  }
  ASSIGN_OR_RETURN(TensorType result, ProductType(operands, attributes));
  RETURN_IF_ERROR(CheckEpilogue(operands, attributes, result));
  RETURN_IF_ERROR(WantKernel(attributes));
  RETURN_IF_ERROR(WantAtLeast(attributes, "group", 1, 1));
  return std::vector<TensorType>{std::move(result)};
}

// Matrices over leading axes that are equal in both operands.
absl::StatusOr<std::vector<TensorType>> BatchMatmulShape(OperandTypes operands, const AttributeMap& attributes) {
  for (int i = 0; i < 2; ++i) {
    RETURN_IF_ERROR(WantDType(operands, i, DType::kFloat32));
    if (operands[i].rank() < 2) return Refuse(Describe(operands, i), " holds no matrices");
  }
  const Shape& a = operands[0].shape;
  const Shape& b = operands[1].shape;
  if (!std::equal(a.begin(), a.end() - 2, b.begin(), b.end() - 2)) {
    return Refuse(Describe(operands, 0), " and ", Describe(operands, 1),
                  " differ in the axes before the matrices; broadcast_to makes them equal");
  }
  ASSIGN_OR_RETURN(TensorType result, ProductType(operands, attributes));
  if (!HasSaneExtents(result.shape)) return Refuse(ShapeToString(result.shape), " has more than 2^60 elements");
  RETURN_IF_ERROR(WantKernel(attributes));
  return std::vector<TensorType>{std::move(result)};
}

Value* Multiply(GraphBuilder& builder, const std::string& op, Value* a, bool transpose_a, Value* b, bool transpose_b) {
  AttributeMap attributes;
  if (transpose_a) attributes["transpose_a"] = true;
  if (transpose_b) attributes["transpose_b"] = true;
  return builder.Emit(op, {a, b}, std::move(attributes));
}

// One multiply each, whatever the transposes: a gradient that were transposed
// afterwards would cost a pass over memory.
Value* MatmulGradient(GraphBuilder& builder, const Node& node, int operand, Value* gradient) {
  PIPELOOM_CHECK(GetString(node.attributes, "epilogue", "").empty(),
                 "gradient of a matmul with an epilogue: ", node.results[0]->name, "; differentiate before fuse");
  Value* a = node.operands[0];
  Value* b = node.operands[1];
  const bool transpose_a = GetBool(node.attributes, "transpose_a", false);
  const bool transpose_b = GetBool(node.attributes, "transpose_b", false);
  if (operand == 0) {
    return transpose_a ? Multiply(builder, node.op, b, transpose_b, gradient, true)
                       : Multiply(builder, node.op, gradient, false, b, !transpose_b);
  }
  return transpose_b ? Multiply(builder, node.op, gradient, true, a, transpose_a)
                     : Multiply(builder, node.op, a, !transpose_a, gradient, false);
}

int64_t MatmulFlops(const Node& node) {
  const Shape& a = node.operands[0]->type.shape;
  const int64_t k = a.end()[GetBool(node.attributes, "transpose_a", false) ? -2 : -1];
  return FlopsOfResult(node) * (2 * k + static_cast<int64_t>(EpilogueSteps(node.attributes).size()));
}

}  // namespace

std::vector<OpDef> MatmulOps() {
  const OpTraits contracts{/*elementwise=*/false, /*contracts=*/true};
  const AttributeSpec transpose_a = {"transpose_a", AttributeType::kBool};
  const AttributeSpec transpose_b = {"transpose_b", AttributeType::kBool};
  const AttributeSpec kernel = {"kernel", AttributeType::kString};
  return {
      {"matmul",
       2,
       4,
       {transpose_a, transpose_b, {"epilogue", AttributeType::kString}, kernel, {"group", AttributeType::kInt}},
       MatmulShape,
       MatmulGradient,
       MatmulFlops,
       contracts},
      {"batch_matmul",
       2,
       2,
       {transpose_a, transpose_b, kernel},
       BatchMatmulShape,
       MatmulGradient,
       MatmulFlops,
       contracts},
  };
}

}  // namespace pipeloom::op_rules
