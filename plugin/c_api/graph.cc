#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_table.h"
#include "passes/ir/print.h"
#include "plugin/c_api/guard.h"
#include "plugin/c_api/module.h"
#include "plugin/c_api/types.h"

namespace pipeloom::c_api {
namespace {

// A pipeloom_value is the number of its graph and its own number in there, so that one of another graph is refused.
constexpr int kValueBits = 40;
constexpr int64_t kValueMask = (int64_t{1} << kValueBits) - 1;

absl::Status CheckGraph(const pipeloom_graph* graph) {
  RETURN_IF_ERROR(NotNull(graph, "the graph"));
  return CheckModule(graph->module);
}

pipeloom_value Number(pipeloom_graph* graph, Value* value) {
  graph->values.push_back(value);
  return graph->number << kValueBits | (static_cast<int64_t>(graph->values.size()) - 1);
}

absl::StatusOr<Value*> FindValue(const pipeloom_graph* graph, pipeloom_value value, absl::string_view what) {
  const int64_t index = value & kValueMask;
  if (value > 0 && value >> kValueBits == graph->number && index < static_cast<int64_t>(graph->values.size())) {
    return graph->values[static_cast<size_t>(index)];
  }
  return absl::InvalidArgumentError(absl::StrCat(what, " is no value of graph @", graph->graph->name(), ": ", value,
                                                 "; give what a call for this graph has written"));
}

absl::StatusOr<std::vector<Value*>> FindOperands(const pipeloom_graph* graph, const pipeloom_node& node) {
  RETURN_IF_ERROR(ArrayNotNull(node.operands, node.num_operands, "the array of operands"));
  std::vector<Value*> operands;
  for (size_t i = 0; i < node.num_operands; ++i) {
    ASSIGN_OR_RETURN(Value * operand, FindValue(graph, node.operands[i], absl::StrCat("operand ", i)));
    operands.push_back(operand);
  }
  return operands;
}

// `value` as an Enum, of which there are `count`.
template <typename Enum>
absl::StatusOr<Enum> ReadEnum(int value, int count, absl::string_view what) {
  if (value >= 0 && value < count) return static_cast<Enum>(value);
  return absl::InvalidArgumentError(absl::StrCat(what, " is ", value, "; give 0 to ", count - 1));
}

static_assert(PIPELOOM_FORWARD == static_cast<int>(Phase::kForward) &&
              PIPELOOM_BACKWARD == static_cast<int>(Phase::kBackward) &&
              PIPELOOM_UPDATE == static_cast<int>(Phase::kUpdate));

absl::StatusOr<NodeInfo> ReadInfo(const pipeloom_node& node) {
  NodeInfo info;
  if (node.cell != nullptr) info.cell = node.cell;
  if (node.stage < PIPELOOM_NO_STAGE) {
    return absl::InvalidArgumentError(absl::StrCat("the stage is ", node.stage, "; give PIPELOOM_NO_STAGE for none"));
  }
  if (node.stage != PIPELOOM_NO_STAGE) info.stage = StageId(node.stage);
  ASSIGN_OR_RETURN(info.phase, ReadEnum<Phase>(node.phase, 3, "the phase"));
  ASSIGN_OR_RETURN(const int rate, ReadEnum<int>(node.rate, 3, "the rate"));
  info.rate = rate == PIPELOOM_RATE_USUAL   ? UsualRate(info.phase)
              : rate == PIPELOOM_RATE_MICRO ? Rate::kMicro
                                            : Rate::kStep;
  return info;
}

std::string TypesToString(const std::vector<TensorType>& types) {
  return types.empty() ? "none" : absl::StrJoin(types, ", ", [](std::string* out, const TensorType& type) {
    out->append(type.ToString());
  });
}

absl::StatusOr<std::optional<std::vector<TensorType>>> ReadWrittenTypes(const pipeloom_node& node) {
  if (node.result_types == nullptr) return std::nullopt;
  std::vector<TensorType> types;
  for (size_t i = 0; i < node.num_results; ++i) {
    ASSIGN_OR_RETURN(TensorType type, ReadType(&node.result_types[i], absl::StrCat("result ", i)));
    types.push_back(std::move(type));
  }
  return types;
}

absl::StatusOr<std::vector<TensorType>> InferredTypes(absl::string_view op, const std::vector<Value*>& operands,
                                                      const AttributeMap& attributes) {
  std::vector<TensorType> operand_types;
  operand_types.reserve(operands.size());
  for (const Value* operand : operands) operand_types.push_back(operand->type);
  absl::StatusOr<std::vector<TensorType>> types = InferTypes(op, operand_types, attributes);
  if (types.ok()) return types;
  // With the op in front, which PlaceOf says too.
  return absl::Status(types.status().code(), absl::StripPrefix(types.status().message(), absl::StrCat(op, ": ")));
}

// The types of the results: those of the op table, or those that the host gave where it has to.
absl::StatusOr<std::vector<TensorType>> ResultTypes(const pipeloom_node& node, const std::vector<Value*>& operands,
                                                    const AttributeMap& attributes) {
  ASSIGN_OR_RETURN(std::optional<std::vector<TensorType>> written, ReadWrittenTypes(node));
  const OpDef* def = FindOp(node.op);
  const bool are_written = def == nullptr || def->traits.typed;
  std::vector<TensorType> inferred;
  if (def != nullptr) {
    ASSIGN_OR_RETURN(inferred, InferredTypes(node.op, operands, attributes));
  }
  if (are_written) {
    if (written || node.num_results == 0) return written.value_or(inferred);
    return absl::InvalidArgumentError(absl::StrCat(def == nullptr ? "the op table has no such op; a host op" : "it",
                                                   " needs its result types written"));
  }
  if (written && *written != inferred) {
    return absl::InvalidArgumentError(
        absl::StrCat("gives ", TypesToString(inferred), ", but ", TypesToString(*written), " is written"));
  }
  return inferred;
}

absl::Status AddNode(pipeloom_graph* graph, const pipeloom_node& node, absl::string_view op,
                     std::vector<Value*> operands, AttributeMap attributes, const std::vector<TensorType>& types,
                     pipeloom_value* results) {
  ASSIGN_OR_RETURN(NodeInfo info, ReadInfo(node));
  if (types.size() != node.num_results) {
    return absl::InvalidArgumentError(
        absl::StrCat("it gives ", types.size(), " results, but num_results is ", node.num_results));
  }
  RETURN_IF_ERROR(ArrayNotNull(results, node.num_results, "the array for the results"));
  Node* added = graph->graph->AddTypedNode(op, std::move(operands), std::move(attributes), std::move(info), {});
  for (size_t i = 0; i < types.size(); ++i) {
    const char* hint = node.result_names == nullptr ? nullptr : node.result_names[i];
    results[i] = Number(graph, graph->graph->AddResult(added, types[i], hint == nullptr ? op : hint));
  }
  return absl::OkStatus();
}

// What a message begins with: "matmul (cell 'net.layer1')".
std::string PlaceOf(const pipeloom_node& node, absl::string_view op) {
  const bool has_cell = node.cell != nullptr && *node.cell != 0;
  return absl::StrCat(op, has_cell ? absl::StrCat(" (cell '", node.cell, "')") : "");
}

absl::Status AddOpNode(pipeloom_graph* graph, const pipeloom_node& node, pipeloom_value* results) {
  ASSIGN_OR_RETURN(std::vector<Value*> operands, FindOperands(graph, node));
  ASSIGN_OR_RETURN(AttributeMap attributes, ReadAttributes(node.attributes, node.num_attributes));
  ASSIGN_OR_RETURN(const std::vector<TensorType> types, ResultTypes(node, operands, attributes));
  return AddNode(graph, node, node.op, std::move(operands), std::move(attributes), types, results);
}

absl::Status AddCall(pipeloom_graph* graph, const pipeloom_graph& block, const pipeloom_node& node,
                     pipeloom_value* results) {
  const std::string& name = block.graph->name();
  if (block.module != graph->module || graph->module->module.FindBlock(name) != block.graph) {
    return absl::InvalidArgumentError("a call is of a block of the same module");
  }
  ASSIGN_OR_RETURN(std::vector<Value*> operands, FindOperands(graph, node));
  ASSIGN_OR_RETURN(AttributeMap attributes, ReadAttributes(node.attributes, node.num_attributes));
  attributes.insert_or_assign("block", name);
  std::vector<TensorType> types;
  for (const Output& output : block.graph->outputs) types.push_back(output.value->type);
  return AddNode(graph, node, kCall, std::move(operands), std::move(attributes), types, results);
}

}  // namespace
}  // namespace pipeloom::c_api

using pipeloom::Annotate;
using pipeloom::c_api::CheckGraph;
using pipeloom::c_api::FindValue;
using pipeloom::c_api::Guard;
using pipeloom::c_api::NotNull;
using pipeloom::c_api::Number;
using pipeloom::c_api::ReadString;
using pipeloom::c_api::ReadType;

extern "C" {

int pipeloom_graph_add_input(pipeloom_graph* graph, const char* hint, const pipeloom_type* type, int batch_axis,
                             pipeloom_value* value) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckGraph(graph));
    RETURN_IF_ERROR(NotNull(value, "the place for the value"));
    ASSIGN_OR_RETURN(const absl::string_view name, ReadString(hint, "the name of an input"));
    ASSIGN_OR_RETURN(pipeloom::TensorType read, ReadType(type, absl::StrCat("the type of input ", name)));
    const auto axis = batch_axis == PIPELOOM_NO_BATCH_AXIS ? std::nullopt : std::optional<int>(batch_axis);
    if (axis && (*axis < 0 || *axis >= read.rank())) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", name, ": batch axis ", *axis, " is no axis of ", read.ToString()));
    }
    *value = Number(graph, graph->graph->AddInput(name, std::move(read), axis));
    return absl::OkStatus();
  });
}

int pipeloom_graph_add_parameter(pipeloom_graph* graph, const char* hint, const char* parameter,
                                 const pipeloom_type* type, int trainable, pipeloom_value* value) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckGraph(graph));
    RETURN_IF_ERROR(NotNull(value, "the place for the value"));
    ASSIGN_OR_RETURN(const absl::string_view name, ReadString(parameter, "the name of a parameter"));
    ASSIGN_OR_RETURN(pipeloom::TensorType read, ReadType(type, absl::StrCat("the type of parameter ", name)));
    if (graph->graph->FindParameter(name) != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("graph @", graph->graph->name(), " has parameter ", name, " already; use its value everywhere"));
    }
    *value = Number(graph, graph->graph->AddParameter(hint == nullptr ? name : hint, std::string(name), std::move(read),
                                                      trainable != 0));
    return absl::OkStatus();
  });
}

int pipeloom_graph_add_constant(pipeloom_graph* graph, const char* hint, const pipeloom_type* type,
                                const double* elements, size_t num_elements, pipeloom_value* value) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckGraph(graph));
    RETURN_IF_ERROR(NotNull(value, "the place for the value"));
    ASSIGN_OR_RETURN(pipeloom::TensorType read, ReadType(type, "the type of a constant"));
    RETURN_IF_ERROR(NotNull(elements, "the array of elements"));
    if (num_elements != 1 && static_cast<int64_t>(num_elements) != read.num_elements()) {
      return absl::InvalidArgumentError(absl::StrCat("a constant of type ", read.ToString(), " has 1 or ",
                                                     read.num_elements(), " elements, not ", num_elements));
    }
    *value = Number(graph, graph->graph->AddConstant(hint == nullptr ? "constant" : hint, std::move(read),
                                                     std::vector<double>(elements, elements + num_elements)));
    return absl::OkStatus();
  });
}

void pipeloom_node_init(pipeloom_node* node) {
  if (node == nullptr) return;
  *node = {};
  node->stage = PIPELOOM_NO_STAGE;
}

int pipeloom_graph_add_node(pipeloom_graph* graph, const pipeloom_node* node, pipeloom_value* results) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckGraph(graph));
    RETURN_IF_ERROR(NotNull(node, "the node"));
    ASSIGN_OR_RETURN(const absl::string_view op, ReadString(node->op, "the op of a node"));
    return Annotate(pipeloom::c_api::AddOpNode(graph, *node, results), pipeloom::c_api::PlaceOf(*node, op));
  });
}

int pipeloom_graph_add_call(pipeloom_graph* graph, const pipeloom_graph* block, const pipeloom_node* node,
                            pipeloom_value* results) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckGraph(graph));
    RETURN_IF_ERROR(NotNull(block, "the block"));
    RETURN_IF_ERROR(NotNull(node, "the node"));
    return Annotate(pipeloom::c_api::AddCall(graph, *block, *node, results),
                    pipeloom::c_api::PlaceOf(*node, absl::StrCat("call of @", block->graph->name())));
  });
}

int pipeloom_graph_add_output(pipeloom_graph* graph, pipeloom_value value, const char* reduce) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckGraph(graph));
    ASSIGN_OR_RETURN(const absl::string_view how, ReadString(reduce, "the reduce of an output"));
    ASSIGN_OR_RETURN(pipeloom::Value * given, FindValue(graph, value, "the output"));
    graph->graph->outputs.push_back({given, std::string(how)});
    return absl::OkStatus();
  });
}

int pipeloom_graph_set_update(pipeloom_graph* graph, const char* op, const pipeloom_attribute* attributes,
                              size_t num_attributes) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckGraph(graph));
    ASSIGN_OR_RETURN(const absl::string_view name, ReadString(op, "the op of an update"));
    ASSIGN_OR_RETURN(pipeloom::AttributeMap read, pipeloom::c_api::ReadAttributes(attributes, num_attributes));
    graph->graph->update = pipeloom::UpdateRule{std::string(name), std::move(read)};
    return absl::OkStatus();
  });
}

}  // extern "C"
