#include "passes/roll_micro_batches.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/inline_calls.h"
#include "passes/ir/print.h"

namespace pipeloom {
namespace {

// The slices of an input from the first rows to the last, where they are all that reads it, equal, and without a gap.
std::vector<Node*> EqualSlices(const Value& input, const UseMap& uses) {
  std::vector<Node*> slices;
  for (const Use& use : UsesOf(uses, &input)) {
    if (use.node->op != "slice") return {};
    slices.push_back(use.node);
  }
  if (slices.size() < 2 || input.batch_axis != 0) return {};
  const auto first_row = [](const Node* slice) { return GetInts(slice->attributes, "begin", {})[0]; };
  std::stable_sort(slices.begin(), slices.end(),
                   [&](const Node* a, const Node* b) { return first_row(a) < first_row(b); });
  Shape part = input.type.shape;
  part[0] /= static_cast<int64_t>(slices.size());
  for (size_t k = 0; k < slices.size(); ++k) {
    if (slices[k]->results[0]->type.shape != part) return {};
    if (first_row(slices[k]) != static_cast<int64_t>(k) * part[0]) return {};
  }
  return slices;
}

// How a result of all calls makes one value.
struct Merge {
  const Value* value;
  std::string reduce;
};

// The loop over micro-batches that one graph writes out. Each function finds one thing or says why it is not there.
class Loop {
 public:
  Loop(const Module& module, Graph& graph) : module_(module), graph_(graph), uses_(ComputeUses(graph)) {}

  // Whether any input is cut into slices.
  bool FindSlices() {
    for (Value* input : graph_.inputs()) {
      const std::vector<Node*> slices = EqualSlices(*input, uses_);
      if (slices.empty()) continue;
      inputs_.push_back(input);
      for (size_t k = 0; k < slices.size(); ++k) {
        part_of_[slices[k]->results[0]] = {input, k};
        known_.insert(slices[k]);
      }
      count_ = std::max(count_, slices.size());
      fewest_ = std::min(fewest_, slices.size());
    }
    return !inputs_.empty();
  }

  absl::Status Check() {
    if (fewest_ != count_) {
      return Refuse(absl::StrCat("one input is cut into ", fewest_, " slices and another into ", count_));
    }
    RETURN_IF_ERROR(FindCalls());
    for (size_t k = 0; k < count_; ++k) RETURN_IF_ERROR(CheckOperands(k));
    RETURN_IF_ERROR(FindMerges());
    for (const auto& node : graph_.nodes()) {
      if (!known_.contains(node.get())) return Refuse(absl::StrCat(Print(*node), " stands beside the calls"));
    }
    return absl::OkStatus();
  }

  // The graph of one micro-batch; returns how many there were.
  int Roll() {
    Node* first = calls_[0];
    for (Value*& operand : first->operands) {
      if (const auto part = part_of_.find(operand); part != part_of_.end()) operand = part->second.input;
    }
    for (Value* input : inputs_) input->type.shape[0] /= static_cast<int64_t>(count_);
    for (Output& output : graph_.outputs) {
      const auto result = merged_by_.find(output.value);
      output.reduce = result->second.reduce;
      output.value = first->results[result->second.index];
    }
    known_.erase(first);
    graph_.RemoveNodes({known_.begin(), known_.end()});
    graph_.RemoveUnusedLeaves();
    InlineCalls(module_, graph_, {first});
    return static_cast<int>(count_);
  }

 private:
  struct PartOf {
    Value* input;
    size_t number;
  };
  struct Result {
    size_t index;
    std::string reduce;
  };

  absl::Status Refuse(absl::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat("graph @", graph_.name(), " cuts input %", inputs_[0]->name,
                                                   " into ", count_, " micro-batches, but ", why));
  }

  absl::Status FindCalls() {
    calls_.assign(count_, nullptr);
    for (const auto& node : graph_.nodes()) {
      for (const Value* operand : node->operands) {
        const auto part = part_of_.find(operand);
        if (part == part_of_.end()) continue;
        if (node->op != kCall) {
          return Refuse(
              absl::StrCat(Print(*node), " computes with a slice in the graph itself, so that the micro-batches",
                           " are copies of the network; use lazy_inline on the cell that is called for each"));
        }
        Node*& call = calls_[part->second.number];
        if (call == nullptr) call = node.get();
        if (call != node.get()) {
          return Refuse(absl::StrCat("two calls read micro-batch ", part->second.number, ": ", Print(*call), " and ",
                                     Print(*node)));
        }
      }
    }
    for (size_t k = 0; k < count_; ++k) {
      if (calls_[k] == nullptr) return Refuse(absl::StrCat("no call reads micro-batch ", k));
      known_.insert(calls_[k]);
    }
    return absl::OkStatus();
  }

  // Call k reads slices number k where the first call reads those number 0, and else the same.
  absl::Status CheckOperands(size_t k) const {
    const Node& first = *calls_[0];
    const Node& call = *calls_[k];
    if (call.attributes != first.attributes || call.info.phase != first.info.phase) {
      return Refuse(absl::StrCat("not all calls are of one block: ", Print(first), " and ", Print(call)));
    }
    for (size_t i = 0; i < call.operands.size(); ++i) {
      const auto of_first = part_of_.find(first.operands[i]);
      const auto part = part_of_.find(call.operands[i]);
      const bool same = of_first == part_of_.end() || part == part_of_.end()
                            ? first.operands[i] == call.operands[i]
                            : of_first->second.input == part->second.input && part->second.number == k;
      if (!same) {
        return Refuse(absl::StrCat("operand ", i, " of the call for micro-batch ", k, " is ",
                                   ValueName(*call.operands[i]), ", where the first call has ",
                                   ValueName(*first.operands[i])));
      }
      if (part == part_of_.end() && call.operands[i]->kind == Value::Kind::kResult) {
        return Refuse(absl::StrCat("the calls read ", ValueName(*call.operands[i]), ", which is made outside of them"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status FindMerges() {
    for (size_t result = 0; result < calls_[0]->results.size(); ++result) {
      std::vector<const Value*> parts;
      size_t read = 0;
      for (const Node* call : calls_) {
        parts.push_back(call->results[result]);
        read += UsesOf(uses_, parts.back()).size();
      }
      const bool is_output = std::any_of(graph_.outputs.begin(), graph_.outputs.end(), [&](const Output& output) {
        return std::find(parts.begin(), parts.end(), output.value) != parts.end();
      });
      if (read == 0 && !is_output) continue;
      std::optional<Merge> merge = FindConcat(parts);
      if (!merge) merge = FindSum(parts);
      if (!merge || is_output) {
        return Refuse(absl::StrCat("the results ", ValueName(*parts[0]), " to ", ValueName(*parts.back()),
                                   " are not merged by one concat along axis 0 or by additions in their order"));
      }
      merged_by_[merge->value] = {result, merge->reduce};
    }
    for (const Output& output : graph_.outputs) {
      const auto merged = merged_by_.find(output.value);
      if (merged == merged_by_.end()) {
        return Refuse(
            absl::StrCat("output ", ValueName(*output.value), " is not what the calls' results make together"));
      }
      const bool concat = merged->second.reduce == "concat";
      if ((output.reduce == "concat") != concat) {
        return Refuse(absl::StrCat("output ", ValueName(*output.value), " has reduce=\"", output.reduce,
                                   "\", and its parts are merged by ", concat ? "concat" : "add"));
      }
    }
    return absl::OkStatus();
  }

  // The only node that reads the value; nullptr where there is none.
  const Node* OnlyReader(const Value* value) const {
    const std::vector<Use>& readers = UsesOf(uses_, value);
    return readers.size() == 1 ? readers[0].node : nullptr;
  }

  std::optional<Merge> FindConcat(const std::vector<const Value*>& parts) {
    const Node* concat = OnlyReader(parts[0]);
    if (concat == nullptr || concat->op != "concat" || GetInt(concat->attributes, "axis", 0) != 0) return std::nullopt;
    if (!std::equal(parts.begin(), parts.end(), concat->operands.begin(), concat->operands.end())) return std::nullopt;
    known_.insert(concat);
    return Merge{concat->results[0], "concat"};
  }

  std::optional<Merge> FindSum(const std::vector<const Value*>& parts) {
    const Value* sum = parts[0];
    for (size_t k = 1; k < parts.size(); ++k) {
      const Node* add = OnlyReader(sum);
      if (add == nullptr || add->op != "add" || add->operands[0] != sum || add->operands[1] != parts[k]) return {};
      if (OnlyReader(parts[k]) != add) return {};
      known_.insert(add);
      sum = add->results[0];
    }
    const Node* scale = OnlyReader(sum);
    if (scale == nullptr || scale->op != "mul") return Merge{sum, "sum"};
    const Value* share = scale->operands[scale->operands[0] == sum ? 1 : 0];
    const auto wanted = static_cast<double>(1.0f / static_cast<float>(parts.size()));
    if (share->kind != Value::Kind::kConstant || share->elements != std::vector<double>{wanted}) return {};
    known_.insert(scale);
    return Merge{scale->results[0], "mean"};
  }

  const Module& module_;
  Graph& graph_;
  const UseMap uses_;
  std::vector<Value*> inputs_;  // that are cut
  size_t count_ = 0;
  size_t fewest_ = static_cast<size_t>(-1);
  absl::flat_hash_map<const Value*, PartOf> part_of_;  // by slice
  std::vector<Node*> calls_;                           // by micro-batch
  absl::flat_hash_map<const Value*, Result> merged_by_;
  absl::flat_hash_set<const Node*> known_;  // nodes that belong to the loop
};

}  // namespace

absl::StatusOr<bool> RollMicroBatches::Run(Module& module) const {
  if (module.config.micro_batches != 1 || module.graphs.size() != 1 || module.graphs[0]->chunk) return false;
  Graph& graph = *module.graphs[0];
  Loop loop(module, graph);
  if (!loop.FindSlices()) return false;
  if (std::any_of(graph.nodes().begin(), graph.nodes().end(),
                  [](const auto& node) { return node->info.phase != Phase::kForward; })) {
    return absl::UnimplementedError(absl::StrCat("graph @", graph.name(),
                                                 " writes out micro-batches and brings its own ",
                                                 "backward; give the forward part and an update rule"));
  }
  RETURN_IF_ERROR(loop.Check());
  module.config.micro_batches = loop.Roll();
  RemoveUncalledBlocks(module);
  return true;
}

}  // namespace pipeloom
