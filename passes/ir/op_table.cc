#include "passes/ir/op_table.h"

#include <algorithm>
#include <iterator>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"

namespace pipeloom {
namespace {

constexpr absl::string_view kAttributeTypeNames[] = {"bool", "int", "double", "string", "list of ints"};

// Attribute's alternatives stand in the order of AttributeType.
bool HasType(const Attribute& attribute, AttributeType type) { return attribute.index() == static_cast<size_t>(type); }

std::string TypesToString(OperandTypes operands) {
  return absl::StrCat(
      "(",
      absl::StrJoin(operands, ", ", [](std::string* out, const TensorType& type) { out->append(type.ToString()); }),
      ")");
}

std::string ArityToString(const OpDef& def) {
  if (def.max_operands < 0) return absl::StrCat(def.min_operands, " or more");
  if (def.max_operands == def.min_operands) return absl::StrCat(def.min_operands);
  return absl::StrCat(def.min_operands, " to ", def.max_operands);
}

absl::Status CheckArity(const OpDef& def, OperandTypes operands) {
  const int count = static_cast<int>(operands.size());
  if (count >= def.min_operands && (def.max_operands < 0 || count <= def.max_operands)) return absl::OkStatus();
  return op_rules::Refuse("it takes ", ArityToString(def), " operand(s), not the ", count, " of ",
                          TypesToString(operands));
}

absl::Status CheckAttributes(const OpDef& def, OperandTypes operands, const AttributeMap& attributes) {
  for (const auto& [name, value] : attributes) {
    const auto spec = std::find_if(def.attributes.begin(), def.attributes.end(),
                                   [&, &name = name](const AttributeSpec& spec) { return spec.name == name; });
    if (spec == def.attributes.end()) {
      const std::string known = absl::StrJoin(
          def.attributes, ", ", [](std::string* out, const AttributeSpec& spec) { absl::StrAppend(out, spec.name); });
      return op_rules::Refuse("attribute ", name, " is unknown on ", TypesToString(operands), "; ",
                              known.empty() ? "it takes none" : absl::StrCat("it takes ", known));
    }
    if (!HasType(value, spec->type)) {
      return op_rules::Refuse("attribute ", name, "=", AttributeToString(value), " is of type ",
                              kAttributeTypeNames[value.index()], " on ", TypesToString(operands),
                              "; give one of type ", kAttributeTypeNames[static_cast<int>(spec->type)]);
    }
  }
  for (const AttributeSpec& spec : def.attributes) {
    if (spec.required && attributes.find(spec.name) == attributes.end()) {
      return op_rules::Refuse("attribute ", spec.name, " (", kAttributeTypeNames[static_cast<int>(spec.type)],
                              ") is missing on ", TypesToString(operands));
    }
  }
  return absl::OkStatus();
}

std::vector<OpDef> AllOps() {
  std::vector<OpDef> table;
  for (auto family : {op_rules::MatmulOps, op_rules::ElementwiseOps, op_rules::MathOps, op_rules::LossOps,
                      op_rules::ReductionOps, op_rules::NormalizationOps, op_rules::MovementOps, op_rules::GatherOps,
                      op_rules::LogicalOps, op_rules::DropoutOps, op_rules::PipelineOps, op_rules::UpdateOps}) {
    std::vector<OpDef> rows = family();
    std::move(rows.begin(), rows.end(), std::back_inserter(table));
  }
  return table;
}

absl::flat_hash_map<absl::string_view, const OpDef*> RowsByName() {
  absl::flat_hash_map<absl::string_view, const OpDef*> rows;
  for (const OpDef& def : OpTable()) rows.emplace(def.name, &def);
  return rows;
}

absl::StatusOr<std::vector<TensorType>> InferTypesOf(const OpDef& def, OperandTypes operands,
                                                     const AttributeMap& attributes) {
  RETURN_IF_ERROR(CheckArity(def, operands));
  RETURN_IF_ERROR(CheckAttributes(def, operands, attributes));
  if (def.shape == nullptr) return std::vector<TensorType>();
  return def.shape(operands, attributes);
}

}  // namespace

const std::vector<OpDef>& OpTable() {
  static const std::vector<OpDef>& table = *new std::vector<OpDef>(AllOps());
  return table;
}

const OpDef* FindOp(absl::string_view name) {
  static const absl::flat_hash_map<absl::string_view, const OpDef*>& rows = *new auto(RowsByName());
  const auto row = rows.find(name);
  return row == rows.end() ? nullptr : row->second;
}

absl::StatusOr<std::vector<TensorType>> InferTypes(absl::string_view op, OperandTypes operands,
                                                   const AttributeMap& attributes) {
  const OpDef* def = FindOp(op);
  if (def == nullptr) {
    return op_rules::Refuse(op, ": the op table has no such op, so its result types on ", TypesToString(operands),
                            " must be written");
  }
  absl::StatusOr<std::vector<TensorType>> types = InferTypesOf(*def, operands, attributes);
  if (!types.ok()) return Annotate(types.status(), op);
  return types;
}

std::vector<UpdateState> UpdateStates(absl::string_view op, const AttributeMap& attributes) {
  if (op == "adam" || op == "adamw") return {{"moment1"}, {"moment2"}, {"step", /*scalar=*/true}};
  if (op == "sgd" && GetDouble(attributes, "momentum", 0.0) != 0.0) return {{"accum"}};
  return {};
}

std::vector<Value*> WrittenOperands(const Node& node) {
  std::vector<Value*> written;
  const OpDef* def = FindOp(node.op);
  if (def == nullptr) return written;
  for (int operand : def->writes) {
    if (operand < static_cast<int>(node.operands.size())) written.push_back(node.operands[operand]);
  }
  return written;
}

int64_t NodeFlops(const Node& node) {
  const OpDef* def = FindOp(node.op);
  return def == nullptr || def->flops == nullptr ? 0 : def->flops(node);
}

}  // namespace pipeloom
