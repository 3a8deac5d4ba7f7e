#include "passes/choose_kernels.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_table.h"
#include "passes/ir/print.h"

namespace pipeloom {
namespace {

constexpr int64_t kRowsOfAGroup = 128;

// Below these, measured on one core, brgemm's copy of the whole weight costs more than the product itself.
constexpr int64_t kMostRowsOfRows = 16;
constexpr int64_t kFewestColumnsOfRows = 64;
constexpr int64_t kShortestSumOfTransposedRows = 128;

bool IsProduct(const Node& node) { return node.op == "matmul" || node.op == "batch_matmul"; }

// Of the last two axes: a batch of products has the kernel of each.
std::string KernelOf(const Node& matmul, int threads) {
  const bool transpose_b = GetBool(matmul.attributes, "transpose_b", false);
  const int64_t sum = matmul.operands[0]->type.shape.back();
  const Shape& result = matmul.results[0]->type.shape;
  const bool rows = threads == 1 && !GetBool(matmul.attributes, "transpose_a", false) &&
                    result.end()[-2] <= kMostRowsOfRows && result.end()[-1] >= kFewestColumnsOfRows &&
                    (!transpose_b || sum >= kShortestSumOfTransposedRows);
  return rows ? "rows" : "brg";
}

// Sets an attribute; whether that changed it.
bool Set(Node& node, absl::string_view name, const Attribute& value) {
  Attribute& attribute = node.attributes[std::string(name)];
  if (attribute == value) return false;
  attribute = value;
  return true;
}

using ValueSet = absl::flat_hash_set<const Value*>;

// What a graph alone does not say. For a block: what holds for the operands and results of all its calls.
struct Surroundings {
  ValueSet stacked_inputs;    // rows of consecutive micro-batches can lie one after the other
  ValueSet read_once_a_step;  // outputs that nobody reads more often
};

// Whether the rows of consecutive micro-batches can lie one after the other: the value is another one in each
// micro-batch, and axis 0 is what grows.
bool StacksOverMicroBatches(const Value* value, const Surroundings& around) {
  while (value->kind == Value::Kind::kResult) {
    const OpDef* op = FindOp(value->producer->op);
    if (op == nullptr || !op->traits.view) return value->producer->info.rate == Rate::kMicro;
    value = value->producer->operands[0];
  }
  return around.stacked_inputs.contains(value);
}

// Whether the node sums over axis 0 of all its operands, and over nothing that would stay apart in a larger batch.
bool SumsOverRows(const Node& node) {
  if (node.op == "matmul") {
    return GetBool(node.attributes, "transpose_a", false) && !GetBool(node.attributes, "transpose_b", false) &&
           node.operands.size() == 2;
  }
  if (node.op == "gather_grad") return node.operands[1]->type.rank() > 0;
  if (node.op == "layer_norm_grad_gamma") return node.operands[0]->type.rank() > 1;
  if (node.op != "reduce_sum" || node.operands[0]->type.rank() == 0) return false;
  const std::vector<int64_t> axes = GetInts(node.attributes, "axes", {});
  return (axes.empty() || axes[0] == 0) && !GetBool(node.attributes, "keep_dims", false);
}

bool ServesStepOnly(const Graph& graph, const UseMap& uses, const Surroundings& around, const Value* value) {
  const std::vector<Use>& readers = UsesOf(uses, value);
  bool accumulated = false;
  for (const Output& output : graph.outputs) {
    if (output.value != value) continue;
    if (!IsAccumulated(output)) return readers.empty() && around.read_once_a_step.contains(value);
    accumulated = true;
  }
  return (accumulated || !readers.empty()) &&
         std::all_of(readers.begin(), readers.end(), [](const Use& use) { return use.node->info.rate == Rate::kStep; });
}

bool IsGroupable(const Graph& graph, const UseMap& uses, const Surroundings& around, const Node& node) {
  return node.info.phase == Phase::kBackward && node.info.rate == Rate::kMicro && SumsOverRows(node) &&
         ServesStepOnly(graph, uses, around, node.results[0]) &&
         std::all_of(node.operands.begin(), node.operands.end(),
                     [&](const Value* operand) { return StacksOverMicroBatches(operand, around); });
}

Surroundings SurroundingsOfGraph(const Graph& graph) {
  Surroundings around;
  for (const Value* input : graph.inputs()) {
    if (input->kind == Value::Kind::kInput && input->batch_axis == 0) around.stacked_inputs.insert(input);
  }
  return around;
}

// Of each block: what holds at all its calls, so that a block's choice is right for each of them.
absl::flat_hash_map<const Graph*, Surroundings> SurroundingsOfBlocks(const Module& module) {
  absl::flat_hash_map<const Graph*, Surroundings> of_block;
  for (const auto& block : module.blocks) {
    Surroundings& around = of_block[block.get()];
    around.stacked_inputs.insert(block->inputs().begin(), block->inputs().end());
    for (const Output& output : block->outputs) around.read_once_a_step.insert(output.value);
  }
  for (const auto& graph : module.graphs) {
    const UseMap uses = ComputeUses(*graph);
    const Surroundings around = SurroundingsOfGraph(*graph);
    for (const auto& node : graph->nodes()) {
      if (node->op != kCall) continue;
      const Graph* body = BodyOf(module, *node);
      Surroundings& inside = of_block[body];
      for (size_t i = 0; i < body->inputs().size(); ++i) {
        if (!StacksOverMicroBatches(node->operands[i], around)) inside.stacked_inputs.erase(body->inputs()[i]);
      }
      for (size_t i = 0; i < node->results.size(); ++i) {
        if (ServesStepOnly(*graph, uses, around, node->results[i])) continue;
        inside.read_once_a_step.erase(body->outputs[i].value);
      }
    }
  }
  return of_block;
}

int64_t GroupOf(const Node& node, int64_t micro_batches) {
  const int64_t rows = std::max<int64_t>(1, node.operands[0]->type.shape[0]);
  return std::min(micro_batches, (kRowsOfAGroup + rows - 1) / rows);
}

bool Choose(const Graph& graph, const Surroundings& around, const PipelineConfig& config) {
  bool changed = false;
  const UseMap uses = ComputeUses(graph);
  for (const auto& node : graph.nodes()) {
    if (IsProduct(*node)) changed |= Set(*node, "kernel", KernelOf(*node, config.threads));
    if (!IsGroupable(graph, uses, around, *node)) continue;
    const int64_t group = GroupOf(*node, config.micro_batches);
    if (group > 1) changed |= Set(*node, "group", group);
  }
  return changed;
}

absl::Status CheckChoices(const Graph& graph, const PipelineConfig& config) {
  for (const auto& node : graph.nodes()) {
    const int64_t group = GetInt(node->attributes, "group", 1);
    if (group > config.micro_batches) {
      return absl::InternalError(
          absl::StrCat(Print(*node), ": a group of ", group, " of ", config.micro_batches, " micro-batches"));
    }
    if (IsProduct(*node) && GetString(node->attributes, "kernel", "").empty()) {
      return absl::InternalError(absl::StrCat(Print(*node), ": no kernel is chosen"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> ChooseKernels::Run(Module& module) const {
  bool changed = false;
  const auto of_block = SurroundingsOfBlocks(module);
  for (const auto& block : module.blocks) changed |= Choose(*block, of_block.at(block.get()), module.config);
  for (const auto& graph : module.graphs) changed |= Choose(*graph, SurroundingsOfGraph(*graph), module.config);
  return changed;
}

absl::Status ChooseKernels::CheckAfter(const Module& module) const {
  for (const auto& block : module.blocks) RETURN_IF_ERROR(CheckChoices(*block, module.config));
  for (const auto& graph : module.graphs) RETURN_IF_ERROR(CheckChoices(*graph, module.config));
  return absl::OkStatus();
}

}  // namespace pipeloom
