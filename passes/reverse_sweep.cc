#include "passes/reverse_sweep.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_table.h"

namespace pipeloom {

absl::flat_hash_set<const Value*> ReachedValues(const Graph& graph, absl::flat_hash_set<const Value*> from,
                                                BlockGradients& blocks) {
  for (const auto& node : graph.nodes()) {
    const bool reached = std::any_of(node->operands.begin(), node->operands.end(),
                                     [&](const Value* operand) { return from.contains(operand); });
    if (!reached) continue;
    const std::vector<bool> within = node->op == kCall ? blocks.ReachedResults(*node, from) : std::vector<bool>();
    for (size_t i = 0; i < node->results.size(); ++i) {
      if (!within.empty() && !within[i]) continue;
      if (Info(node->results[i]->type.dtype).floating) from.insert(node->results[i]);
    }
  }
  return from;
}

const std::vector<Value*>& ReverseSweep::ContributionsTo(const Value* value) const {
  static const std::vector<Value*>& none = *new std::vector<Value*>();
  const auto found = contributions_.find(value);
  return found == contributions_.end() ? none : found->second;
}

absl::Status ReverseSweep::Run() {
  std::vector<Node*> forward;
  for (const auto& node : graph_.nodes()) {
    forward.push_back(node.get());
    for (const Value* operand : node->operands) ++uses_[operand];
  }
  for (auto node = forward.rbegin(); node != forward.rend(); ++node) {
    RETURN_IF_ERROR((*node)->op == kCall ? VisitCall(**node) : Visit(**node));
  }
  // A gradient found late may have asked a block for further results.
  for (Node* node : forward) {
    if (node->op == kCall) blocks_.AddMissingResults(graph_, *node);
  }
  return absl::OkStatus();
}

absl::Status ReverseSweep::Visit(const Node& node) {
  const auto result = std::find_if(node.results.begin(), node.results.end(),
                                   [&](const Value* value) { return contributions_.contains(value); });
  if (result == node.results.end()) return absl::OkStatus();
  GraphBuilder builder(graph_, {node.info.cell, node.info.stage, Phase::kBackward, Rate::kMicro, node.info.chunk});
  Value* gradient = SumInProgramOrder(builder, contributions_[*result], *result);
  const OpDef* op = FindOp(node.op);
  for (int i = static_cast<int>(node.operands.size()) - 1; i >= 0; --i) {
    Value* operand = node.operands[static_cast<size_t>(i)];
    if (!active_.contains(operand)) continue;
    if (op == nullptr || op->gradient == nullptr) {
      return absl::UnimplementedError(absl::StrCat("op ", node.op, " (cell ", node.info.cell, ", %", (*result)->name,
                                                   ") has no gradient, but a trainable ",
                                                   "parameter reaches the loss through it; freeze what is before it"));
    }
    const size_t nodes_before = graph_.nodes().size();
    Value* contribution = op->gradient(builder, node, i, gradient);
    if (contribution == nullptr) continue;
    // A parameter's gradient is summed over micro-batches, so it is what a node makes in each of them.
    if (contribution->kind == Value::Kind::kConstant && operand->kind == Value::Kind::kParameter) {
      contribution = builder.Emit("copy", {contribution});
    }
    if (graph_.nodes().size() > nodes_before) graph_.Rename(contribution, absl::StrCat("d.", operand->name));
    contributions_[operand].push_back(contribution);
    first_use_cell_[operand] = node.info.cell;  // the sweep goes up, so the first use is the last to write
  }
  return absl::OkStatus();
}

std::vector<Value*> ReverseSweep::GradientsOfResults(GraphBuilder& builder, const Node& call,
                                                     BlockGradients::Wanted& wanted) {
  std::vector<Value*> gradients;
  for (size_t i = 0; i < call.results.size(); ++i) {
    const std::vector<Value*>& contributions = ContributionsTo(call.results[i]);
    if (contributions.empty()) continue;
    // Uses inside of the block come before those outside, so the sum begins there and takes these one by one.
    if (contributions.size() > 1 && blocks_.ReadsOwnResult(call, i)) {
      wanted.gradients[i] = static_cast<int>(contributions.size());
      gradients.insert(gradients.end(), contributions.begin(), contributions.end());
    } else {
      wanted.gradients[i] = 1;
      gradients.push_back(SumInProgramOrder(builder, contributions, call.results[i]));
    }
  }
  return gradients;
}

absl::Status ReverseSweep::VisitCall(Node& call) {
  GraphBuilder builder(graph_, {call.info.cell, call.info.stage, Phase::kBackward, Rate::kMicro, call.info.chunk});
  BlockGradients::Wanted wanted;
  wanted.gradients.assign(call.results.size(), 0);
  const std::vector<Value*> gradients = GradientsOfResults(builder, call, wanted);
  if (gradients.empty()) return absl::OkStatus();
  for (const Value* operand : call.operands) {
    wanted.operands.push_back(active_.contains(operand));
    wanted.apart.push_back(active_.contains(operand) && uses_[operand] > 1);
  }
  ASSIGN_OR_RETURN(const std::vector<BlockGradients::Contributions> contributions,
                   blocks_.Differentiate(graph_, call, gradients, wanted));
  for (size_t i = 0; i < contributions.size(); ++i) {
    if (contributions[i].values.empty()) continue;
    std::vector<Value*>& all = contributions_[call.operands[i]];
    all.insert(all.end(), contributions[i].values.begin(), contributions[i].values.end());
    first_use_cell_[call.operands[i]] = contributions[i].first_use_cell;
  }
  return absl::OkStatus();
}

Value* ReverseSweep::SumInProgramOrder(GraphBuilder& builder, const std::vector<Value*>& contributions,
                                       const Value* of) {
  Value* sum = contributions.back();
  for (auto next = contributions.rbegin() + 1; next != contributions.rend(); ++next) {
    sum = builder.Emit("add", {sum, *next}, {}, absl::StrCat("d.", of->name, ".sum"));
  }
  return sum;
}

}  // namespace pipeloom
