#include "passes/choose_kernels.h"

#include <algorithm>
#include <string>

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

std::string KernelOf(const Node& matmul, int threads) {
  const bool transpose_b = GetBool(matmul.attributes, "transpose_b", false);
  const Shape& a = matmul.operands[0]->type.shape;
  const Shape& result = matmul.results[0]->type.shape;
  const bool rows = threads == 1 && !GetBool(matmul.attributes, "transpose_a", false) && result[0] <= kMostRowsOfRows &&
                    result[1] >= kFewestColumnsOfRows && (!transpose_b || a[1] >= kShortestSumOfTransposedRows);
  return rows ? "rows" : "brg";
}

// Sets an attribute; whether that changed it.
bool Set(Node& node, absl::string_view name, const Attribute& value) {
  Attribute& attribute = node.attributes[std::string(name)];
  if (attribute == value) return false;
  attribute = value;
  return true;
}

// Whether the rows of consecutive micro-batches can lie one after the other: the value is another one in each
// micro-batch, and axis 0 is what grows.
bool StacksOverMicroBatches(const Value* value) {
  while (value->kind == Value::Kind::kResult) {
    const OpDef* op = FindOp(value->producer->op);
    if (op == nullptr || !op->traits.view) return value->producer->info.rate == Rate::kMicro;
    value = value->producer->operands[0];
  }
  return value->kind == Value::Kind::kInput && value->batch_axis == 0;
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

bool ServesStepOnly(const Graph& graph, const UseMap& uses, const Value* value) {
  const std::vector<Use>& readers = UsesOf(uses, value);
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), [](const Use& use) {
    return use.node->info.rate == Rate::kStep;
  }) && std::none_of(graph.outputs.begin(), graph.outputs.end(), [&](const Output& output) {
    return output.value == value;
  });
}

bool IsGroupable(const Graph& graph, const UseMap& uses, const Node& node) {
  return node.info.phase == Phase::kBackward && node.info.rate == Rate::kMicro && SumsOverRows(node) &&
         ServesStepOnly(graph, uses, node.results[0]) &&
         std::all_of(node.operands.begin(), node.operands.end(), StacksOverMicroBatches);
}

int64_t GroupOf(const Node& node, int64_t micro_batches) {
  const int64_t rows = std::max<int64_t>(1, node.operands[0]->type.shape[0]);
  return std::min(micro_batches, (kRowsOfAGroup + rows - 1) / rows);
}

}  // namespace

absl::StatusOr<bool> ChooseKernels::Run(Module& module) const {
  bool changed = false;
  for (auto& graph : module.graphs) {
    const UseMap uses = ComputeUses(*graph);
    for (const auto& node : graph->nodes()) {
      if (node->op == "matmul") changed |= Set(*node, "kernel", KernelOf(*node, module.config.threads));
      if (!IsGroupable(*graph, uses, *node)) continue;
      const int64_t group = GroupOf(*node, module.config.micro_batches);
      if (group > 1) changed |= Set(*node, "group", group);
    }
  }
  return changed;
}

absl::Status ChooseKernels::CheckAfter(const Module& module) const {
  for (const auto& graph : module.graphs) {
    for (const auto& node : graph->nodes()) {
      const int64_t group = GetInt(node->attributes, "group", 1);
      if (group > module.config.micro_batches) {
        return absl::InternalError(
            absl::StrCat(Print(*node), ": a group of ", group, " of ", module.config.micro_batches, " micro-batches"));
      }
      if (node->op == "matmul" && GetString(node->attributes, "kernel", "").empty()) {
        return absl::InternalError(absl::StrCat(Print(*node), ": no kernel is chosen"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
