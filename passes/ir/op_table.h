#ifndef PASSES_IR_OP_TABLE_H_
#define PASSES_IR_OP_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "passes/ir/graph.h"
#include "passes/ir/graph_builder.h"

namespace pipeloom {

enum class AttributeType { kBool, kInt, kDouble, kString, kInts };

struct AttributeSpec {
  absl::string_view name;
  AttributeType type;
  bool required = false;  // an absent one has the default that the op's kernel
                          // and rules read
};

using OperandTypes = absl::Span<const TensorType>;
// Result types, or InvalidArgument that says which operand or attribute does
// not fit and why.
using ShapeRule = absl::StatusOr<std::vector<TensorType>> (*)(OperandTypes operands, const AttributeMap& attributes);
// The gradient of operand `operand`, given that of the node's single result;
// nullptr where it has none (labels). Called only for f32 operands.
using GradientRule = Value* (*)(GraphBuilder& builder, const Node& node, int operand, Value* gradient);
// Floating-point operations of one run; a multiply-add counts as two.
using FlopsRule = int64_t (*)(const Node& node);

struct OpTraits {
  bool elementwise = false;  // result may overwrite an operand of the same type
  bool contracts = false;    // sums over the rows: the node where a weight gradient begins
  bool view = false;         // result is the operand's bytes under another type
  bool typed = false;        // result types are written, not inferred (receive)
  bool whole_step = false;   // reads an input of the step whole, not the micro-batch's slice of it
  bool update_rule = false;  // may be a graph's update rule: (weight, gradient, what UpdateStates lists)
};

// One row an op. Parser, printer, verifier, passes and tests read this table
// and nothing else about an op.
struct OpDef {
  absl::string_view name;
  int min_operands;
  int max_operands;  // -1: any number
  std::vector<AttributeSpec> attributes = {};
  ShapeRule shape = nullptr;        // nullptr: of an op with typed results only
  GradientRule gradient = nullptr;  // nullptr: not differentiable
  FlopsRule flops = nullptr;        // nullptr: 0
  OpTraits traits = {};
  std::vector<int> writes = {};  // operands (parameters) that the node writes, where it has them
};

// All ops, in the order of the documentation.
const std::vector<OpDef>& OpTable();
// The row of an op; nullptr for a host op.
const OpDef* FindOp(absl::string_view name);

// Checks arity, attribute names and types, then the shape rule. InvalidArgument
// that names the op and the operand types.
// {} for a node without results and for one whose result types are written
// (OpTraits::typed).
absl::StatusOr<std::vector<TensorType>> InferTypes(absl::string_view op, OperandTypes operands,
                                                   const AttributeMap& attributes);

// A state parameter of an optimizer op, such as {"accum", of the weight's
// type}; `scalar`: f32[] instead.
struct UpdateState {
  std::string prefix;
  bool scalar = false;
};
// The states that follow (weight, gradient) in the operands of an update op
// with these attributes.
std::vector<UpdateState> UpdateStates(absl::string_view op, const AttributeMap& attributes);

// The operands that a node writes, those of OpDef::writes that it has; {} for a host op.
std::vector<Value*> WrittenOperands(const Node& node);

int64_t NodeFlops(const Node& node);

}  // namespace pipeloom

#endif  // PASSES_IR_OP_TABLE_H_
