#include "passes/ir/verify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_rules.h"
#include "passes/ir/op_table.h"
#include "passes/ir/print.h"

namespace pipeloom {
namespace {

std::string TypesText(const std::vector<TensorType>& types) {
  return types.empty() ? "none" : absl::StrJoin(types, ", ", [](std::string* out, const TensorType& type) {
    out->append(type.ToString());
  });
}

absl::Status CheckType(const TensorType& type) {
  if (op_rules::HasSaneExtents(type.shape)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("extents of ", type.ToString(), " are 0 or more, with a product of at most 2^60"));
}

absl::Status CheckPlacement(const Value& value) {
  if (!value.placement || (value.placement->index >= 0 && value.placement->slots >= 1)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a placement has an index of 0 or more and at least 1 slot, not index ", value.placement->index,
                   " and ", value.placement->slots, " slots"));
}

// The whole numbers that a constant may have: those of its type that a double holds exactly.
std::pair<double, double> ConstantRange(DType dtype) {
  constexpr double kMostExact = 0x1p53;
  if (dtype == DType::kInt64) return {-kMostExact, kMostExact};
  if (dtype == DType::kBool) return {0, 1};
  return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
}

absl::Status CheckConstant(const Value& value) {
  const auto count = static_cast<int64_t>(value.elements.size());
  if (count != 1 && count != value.type.num_elements()) {
    return absl::InvalidArgumentError(absl::StrCat("a constant of type ", value.type.ToString(), " has 1 or ",
                                                   value.type.num_elements(), " elements, not ", count));
  }
  if (Info(value.type.dtype).floating) return absl::OkStatus();
  const auto [least, most] = ConstantRange(value.type.dtype);
  for (double element : value.elements) {
    if (std::trunc(element) != element || element < least || element > most) {
      return absl::InvalidArgumentError(absl::StrCat(AttributeToString(element), " is no ", Info(value.type.dtype).name,
                                                     " that a constant can have"));
    }
  }
  return absl::OkStatus();
}

bool SamePace(const Node& a, const Node& b) { return a.info.phase == b.info.phase && a.info.rate == b.info.rate; }

// The rules of one graph. The first violation is returned, without the graph's title.
class GraphVerifier {
 public:
  GraphVerifier(const Module& module, const Graph& graph) : module_(module), graph_(graph) {
    defined_.reserve(graph.inputs().size() + graph.parameters().size() + graph.constants().size() +
                     graph.nodes().size());
  }

  absl::Status Run() {
    for (const std::vector<Value*>* leaves : {&graph_.inputs(), &graph_.parameters(), &graph_.constants()}) {
      for (const Value* value : *leaves) {
        absl::Status status = Define(*value);
        if (status.ok()) status = CheckLeaf(*value);
        if (!status.ok()) return Annotate(status, ValueName(*value));
      }
    }
    for (const auto& node : graph_.nodes()) {
      const absl::Status status = CheckNode(*node);
      if (status.ok()) continue;
      const std::string& cell = node->info.cell;
      return Annotate(status, absl::StrCat(Text(*node), cell.empty() ? "" : absl::StrCat(" (cell '", cell, "')")));
    }
    bool after_gradient = false;
    for (const Output& output : graph_.outputs) {
      RETURN_IF_ERROR(CheckOutput(output));
      if (after_gradient && output.reduce != kGradientOutput) {
        return absl::InvalidArgumentError(
            absl::StrCat("output ", ValueName(*output.value), " stands after a gradient; give gradients out last"));
      }
      after_gradient = output.reduce == kGradientOutput;
    }
    return graph_.update ? CheckUpdateRule(*graph_.update) : absl::OkStatus();
  }

 private:
  // The node's line; its op alone where an operand may not even exist any more.
  std::string Text(const Node& node) const {
    const bool printable =
        std::all_of(node.operands.begin(), node.operands.end(), [this](const Value* operand) { return Owns(operand); });
    return printable ? Print(node) : node.op;
  }

  // Whether the value is one of the graph's; looks at all of them, for messages.
  bool Owns(const Value* value) const {
    for (const std::vector<Value*>* leaves : {&graph_.inputs(), &graph_.parameters(), &graph_.constants()}) {
      if (std::find(leaves->begin(), leaves->end(), value) != leaves->end()) return true;
    }
    return std::any_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const auto& node) {
      return std::find(node->results.begin(), node->results.end(), value) != node->results.end();
    });
  }

  // Holds for every value, when its definition is reached.
  absl::Status Define(const Value& value) {
    if (graph_.Find(value.name) != &value) return absl::InvalidArgumentError("names of values are unique in a graph");
    if (!defined_.insert(&value).second) return absl::InvalidArgumentError("a value is defined once");
    RETURN_IF_ERROR(CheckType(value.type));
    return CheckPlacement(value);
  }

  absl::Status CheckLeaf(const Value& value) {
    switch (value.kind) {
      case Value::Kind::kInput:
        if (value.batch_axis && (*value.batch_axis < 0 || *value.batch_axis >= value.type.rank())) {
          return absl::InvalidArgumentError(
              absl::StrCat("batch axis ", *value.batch_axis, " is no axis of ", value.type.ToString()));
        }
        return absl::OkStatus();
      case Value::Kind::kConstant:
        return CheckConstant(value);
      default:
        return absl::OkStatus();
    }
  }

  absl::Status CheckNode(const Node& node) {
    std::vector<TensorType> operands;
    operands.reserve(node.operands.size());
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const Value* operand = node.operands[i];
      if (!defined_.contains(operand)) {
        if (!Owns(operand)) {
          return absl::InvalidArgumentError(absl::StrCat("operand ", i, " is no value of this graph"));
        }
        return absl::InvalidArgumentError(absl::StrCat(ValueName(*operand), " is read above its definition"));
      }
      operands.push_back(operand->type);
    }
    for (const Value* result : node.results) {
      if (result->kind != Value::Kind::kResult || result->producer != &node) {
        return absl::InvalidArgumentError(absl::StrCat(ValueName(*result), " does not name this node its producer"));
      }
      const absl::Status status = Define(*result);
      if (!status.ok()) return Annotate(status, ValueName(*result));
    }
    if (node.info.stage && (node.info.stage->value() < 0 || node.info.stage->value() >= module_.config.stages)) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", node.info.stage->value(), " is not one of the ",
                                                     module_.config.stages, " stages, which count from 0"));
    }
    if (node.info.chunk) RETURN_IF_ERROR(CheckChunk(node.info));
    for (const auto& [name, value] : node.attributes) {
      if (!IsPlainWord(name))
        return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' is no plain word"));
    }
    const OpDef* op = FindOp(node.op);
    if (op == nullptr) return absl::OkStatus();
    RETURN_IF_ERROR(CheckAgainstTable(*op, node, operands));
    return node.op == kCall ? CheckCall(node) : absl::OkStatus();
  }

  absl::Status CheckChunk(const NodeInfo& info) const {
    const ChunkId chunk = *info.chunk;
    const PipelineConfig& config = module_.config;
    if (!graph_.chunk && info.stage && chunk.value() >= config.stages && chunk < ChunkId(config.chunks()) &&
        config.StageOf(chunk) == *info.stage) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("chunk ", chunk.value(), " is no further chunk of stage ", info.stage ? info.stage->value() : -1,
                     "; with ", config.chunks_per_rank, " chunks a rank and ", config.stages,
                     " stages these are stage + stages, stage + 2 stages, ..., in a graph that is not split"));
  }

  absl::Status CheckCall(const Node& call) const {
    const std::string name = GetString(call.attributes, "block", "");
    const Graph* body = module_.FindBlock(name);
    if (body == nullptr) return absl::InvalidArgumentError(absl::StrCat("there is no block '", name, "'"));
    if (body == &graph_ || module_.FindBlock(graph_.name()) == &graph_) {
      return absl::InvalidArgumentError("a block calls no other block; inline one of the two");
    }
    std::vector<const Value*> formals(body->inputs().begin(), body->inputs().end());
    formals.insert(formals.end(), body->parameters().begin(), body->parameters().end());
    if (formals.size() != call.operands.size() || body->outputs.size() != call.results.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("block ", name, " takes ", body->inputs().size(), " inputs and ", body->parameters().size(),
                       " parameters and gives ", body->outputs.size(), " results; the call has ", call.operands.size(),
                       " operands and ", call.results.size(), " results"));
    }
    for (size_t i = 0; i < formals.size(); ++i) RETURN_IF_ERROR(CheckOperand(*formals[i], *call.operands[i]));
    for (size_t i = 0; i < call.results.size(); ++i) {
      if (call.results[i]->type == body->outputs[i].value->type) continue;
      return absl::InvalidArgumentError(absl::StrCat(ValueName(*call.results[i]), " is ",
                                                     call.results[i]->type.ToString(), ", but block ", name, " gives ",
                                                     body->outputs[i].value->type.ToString()));
    }
    if (body->nodes().empty() || SamePace(call, *body->nodes()[0])) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the nodes of block ", name, " have another phase or rate: ", Print(*body->nodes()[0])));
  }

  static absl::Status CheckOperand(const Value& formal, const Value& given) {
    const bool wants_parameter = formal.kind == Value::Kind::kParameter;
    const auto text = [](const Value& value, bool parameter) {
      return absl::StrCat(ValueName(value), ": ", value.type.ToString(),
                          parameter ? (value.trainable ? ", a parameter" : ", a parameter that is not trained") : "");
    };
    const bool fits =
        formal.type == given.type &&
        (!wants_parameter || (given.kind == Value::Kind::kParameter && given.trainable == formal.trainable));
    if (fits) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the block wants ", text(formal, wants_parameter), ", not ",
                                                   text(given, given.kind == Value::Kind::kParameter)));
  }

  static absl::Status CheckAgainstTable(const OpDef& op, const Node& node, const std::vector<TensorType>& operands) {
    ASSIGN_OR_RETURN(const std::vector<TensorType> inferred, InferTypes(node.op, operands, node.attributes));
    std::vector<TensorType> given;
    for (const Value* result : node.results) given.push_back(result->type);
    if (!op.traits.typed && given != inferred) {
      return absl::InvalidArgumentError(
          absl::StrCat("result types are ", TypesText(given), ", but the op gives ", TypesText(inferred)));
    }
    for (int operand : op.writes) {
      if (operand >= static_cast<int>(node.operands.size())) continue;
      const Value& written = *node.operands[static_cast<size_t>(operand)];
      if (written.kind == Value::Kind::kParameter) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", operand, ", ", ValueName(written), ", is written and is no parameter"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckOutput(const Output& output) const {
    if (!defined_.contains(output.value)) return absl::InvalidArgumentError("an output is no value of this graph");
    if (graph_.chunk && output.value->kind != Value::Kind::kResult) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", ValueName(*output.value), " of a split graph is made by none of its nodes"));
    }
    if (output.reduce == kGradientOutput) return CheckGradientOutput(output);
    if (output.reduce == kOnceOutput) return CheckOnceOutput(output);
    constexpr absl::string_view kReductions[] = {"", "sum", "mean", "concat"};
    if (std::find(std::begin(kReductions), std::end(kReductions), output.reduce) == std::end(kReductions)) {
      return absl::InvalidArgumentError(absl::StrCat("output ", ValueName(*output.value), " has reduce=\"",
                                                     output.reduce,
                                                     "\"; choose one of sum, mean, concat, once, gradient"));
    }
    if (output.index >= 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("output ", ValueName(*output.value), " has index ", output.index, "; give 0 or more"));
  }

  static absl::Status CheckOnceOutput(const Output& output) {
    const Node* producer = output.value->producer;
    if (producer != nullptr && producer->info.rate == Rate::kStep) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("output ", ValueName(*output.value), " has reduce=\"once\", but is ",
                                                   "not made once a step; choose one of sum, mean, concat"));
  }

  static absl::Status CheckGradientOutput(const Output& output) {
    const Value& value = *output.value;
    if (value.kind == Value::Kind::kParameter && value.trainable && Info(value.type.dtype).floating) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("output ", ValueName(value), " has reduce=\"gradient\"; only a",
                                                   " trainable parameter of floats has a gradient to give out"));
  }

  // A rule fits if its attributes fit a node that updates a scalar, with one of the op's numbers of operands.
  static absl::Status CheckUpdateRule(const UpdateRule& rule) {
    const OpDef* op = FindOp(rule.op);
    if (op == nullptr || !op->traits.update_rule) {
      return absl::InvalidArgumentError(absl::StrCat("update ", rule.op, " is no optimizer of the op table"));
    }
    absl::Status status;
    for (int count = op->min_operands; count <= op->max_operands; ++count) {
      const std::vector<TensorType> operands(static_cast<size_t>(count), TensorType{DType::kFloat32, {}});
      status = Annotate(InferTypes(rule.op, operands, rule.attributes).status(), "update");
      if (status.ok()) return status;
    }
    return status;
  }

  const Module& module_;
  const Graph& graph_;
  absl::flat_hash_set<const Value*> defined_;
};

struct NamedOutput {
  const Graph* graph;
  const TensorType* type;
};
using OutputsByName = absl::flat_hash_map<absl::string_view, std::vector<NamedOutput>>;

// A saved or boundary input of a graph; outputs of all graphs are known to be sound.
absl::Status CheckJoin(const OutputsByName& outputs, const Graph& reader, const Value& value) {
  const bool saved = value.kind == Value::Kind::kSaved;
  if (!reader.chunk) return absl::InvalidArgumentError("saved and boundary inputs stand in split graphs only");
  std::vector<std::string> others;
  const auto named = outputs.find(value.name);
  for (const NamedOutput& output : named == outputs.end() ? std::vector<NamedOutput>() : named->second) {
    if ((*output.graph->chunk == *reader.chunk) != saved) continue;
    if (saved && *output.graph->part >= *reader.part) continue;
    if (*output.type == value.type) return absl::OkStatus();
    others.push_back(output.type->ToString());
  }
  const absl::string_view where = saved ? "an earlier part of the same chunk" : "another chunk";
  if (others.empty()) return absl::InvalidArgumentError(absl::StrCat("no output of ", where, " has this name"));
  return absl::InvalidArgumentError(absl::StrCat("its type is ", value.type.ToString(), ", but the output of ", where,
                                                 " of this name is ", absl::StrJoin(others, ", ")));
}

absl::Status CheckJoins(const Module& module) {
  OutputsByName outputs;
  for (const auto& graph : module.graphs) {
    if (!graph->chunk) continue;
    for (const Output& output : graph->outputs)
      outputs[output.value->name].push_back({graph.get(), &output.value->type});
  }
  for (const auto& graph : module.graphs) {
    for (const Value* input : graph->inputs()) {
      if (input->kind == Value::Kind::kInput) continue;
      RETURN_IF_ERROR(Annotate(CheckJoin(outputs, *graph, *input),
                               absl::StrCat("graph ", GraphTitle(*graph), ": ", ValueName(*input))));
    }
  }
  return absl::OkStatus();
}

// More than any machine has ranks; a mistyped number then ends at once and not when memory does.
constexpr int kMostStages = 1 << 16;
// More than any machine has cores.
constexpr int kMostThreads = 1 << 10;

absl::Status CheckConfig(const PipelineConfig& config) {
  if (config.stages > kMostStages) {
    return absl::InvalidArgumentError(absl::StrCat(config.stages, " stages; give at most ", kMostStages));
  }
  if (config.chunks_per_rank < 1 || config.chunks_per_rank > kMostStages) {
    return absl::InvalidArgumentError(absl::StrCat(config.chunks_per_rank, " chunks a rank; give 1 to ", kMostStages));
  }
  if (config.threads > kMostThreads) {
    return absl::InvalidArgumentError(absl::StrCat(config.threads, " threads a rank; give at most ", kMostThreads));
  }
  if (config.stages >= 1 && config.micro_batches >= 1 && config.threads >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("stages, micro_batches and threads are 1 or more, not ", config.stages,
                                                 ", ", config.micro_batches, " and ", config.threads));
}

absl::Status CheckParameters(const Module& module) {
  struct First {
    const Graph* graph;
    const Value* value;
  };
  absl::flat_hash_map<absl::string_view, First> first;
  const auto text = [](const Graph& graph, const Value& value) {
    return absl::StrCat(value.type.ToString(), value.trainable ? "" : " {trainable=false}", " in graph ",
                        GraphTitle(graph));
  };
  for (const auto& graph : module.graphs) {
    for (const Value* value : graph->parameters()) {
      if (graph->FindParameter(value->parameter) != value) {
        return absl::InvalidArgumentError(absl::StrCat("graph ", GraphTitle(*graph), " has parameter ",
                                                       value->parameter, " twice; use one value of it everywhere"));
      }
      const First& seen = first.emplace(value->parameter, First{graph.get(), value}).first->second;
      if (seen.value->type == value->type && seen.value->trainable == value->trainable) continue;
      return absl::InvalidArgumentError(absl::StrCat("parameter ", value->parameter, " is ",
                                                     text(*seen.graph, *seen.value), " and ", text(*graph, *value),
                                                     "; one name is one parameter"));
    }
  }
  return absl::OkStatus();
}

// What holds for a block beyond what holds for every graph.
absl::Status CheckBlock(const Graph& block) {
  if (block.chunk || block.update) return absl::InvalidArgumentError("a block has no chunk and no update rule");
  for (const Value* input : block.inputs()) {
    if (input->kind == Value::Kind::kInput && !input->batch_axis) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(ValueName(*input), " is no plain input: a block's is whatever its calls give"));
  }
  absl::flat_hash_set<const Value*> given;
  for (const Output& output : block.outputs) {
    const Node* producer = output.value->producer;
    const OpDef* op = producer == nullptr ? nullptr : FindOp(producer->op);
    const bool own = producer != nullptr && (op == nullptr || !op->traits.view);
    if (own && output.reduce.empty() && output.index == 0 && given.insert(output.value).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("output ", ValueName(*output.value),
                                                   " of a block is a node's result, no view, once, without reduce"));
  }
  for (const auto& node : block.nodes()) {
    if (node->info.stage) {
      return absl::InvalidArgumentError(
          absl::StrCat(Print(*node), ": its calls have a stage, a block's nodes have none"));
    }
    if (!SamePace(*node, *block.nodes()[0])) {
      return absl::InvalidArgumentError(
          absl::StrCat(Print(*node), ": all nodes of a block have the phase and the rate of its calls"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBlocks(const Module& module) {
  absl::flat_hash_set<absl::string_view> names;
  for (const auto& block : module.blocks) {
    const std::string title = absl::StrCat("block ", GraphTitle(*block));
    if (!names.insert(block->name()).second) {
      return absl::InvalidArgumentError(absl::StrCat("two blocks are named ", GraphTitle(*block)));
    }
    RETURN_IF_ERROR(Annotate(GraphVerifier(module, *block).Run(), title));
    RETURN_IF_ERROR(Annotate(CheckBlock(*block), title));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Verify(const Module& module) {
  RETURN_IF_ERROR(CheckConfig(module.config));
  RETURN_IF_ERROR(CheckBlocks(module));
  absl::flat_hash_set<std::string> titles;
  for (const auto& graph : module.graphs) {
    const std::string title = GraphTitle(*graph);
    if (graph->chunk.has_value() != graph->part.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("graph ", title, ": a split graph has both a chunk and a part; this one has one of them"));
    }
    if (!titles.insert(title).second) {
      return absl::InvalidArgumentError(absl::StrCat("two graphs are named ", title));
    }
    RETURN_IF_ERROR(Annotate(GraphVerifier(module, *graph).Run(), absl::StrCat("graph ", title)));
  }
  RETURN_IF_ERROR(CheckJoins(module));
  return CheckParameters(module);
}

}  // namespace pipeloom
