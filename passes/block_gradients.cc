#include "passes/block_gradients.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"
#include "passes/chunk_values.h"
#include "passes/reverse_sweep.h"
#include "passes/weight_chain.h"

namespace pipeloom {
namespace {

// Where a value of a block's forward and backward comes from, for one call of it.
struct Source {
  enum class Of { kOperand, kGradient, kForwardResult, kInputResult, kWeightResult };
  Of of;
  size_t index;
};

std::vector<Value*> FormalsOf(const Graph& body) {
  std::vector<Value*> formals = body.inputs();
  formals.insert(formals.end(), body.parameters().begin(), body.parameters().end());
  return formals;
}

std::vector<TensorType> TypesOf(const std::vector<Value*>& values) {
  std::vector<TensorType> types;
  for (const Value* value : values) types.push_back(value->type);
  return types;
}

const Value* RootOf(const Value* value) {
  while (value->producer != nullptr && IsView(*value->producer)) value = value->producer->operands[0];
  return value;
}

std::unique_ptr<Graph> Clone(const Graph& body) {
  auto clone = std::make_unique<Graph>(body.name());
  absl::flat_hash_map<const Value*, Value*> copy;
  for (const Value* input : body.inputs()) copy[input] = clone->AddInput(input->name, input->type, std::nullopt);
  for (const Value* value : body.parameters()) {
    copy[value] = clone->AddParameter(value->name, value->parameter, value->type, value->trainable);
  }
  for (const Value* value : body.constants())
    copy[value] = clone->AddConstant(value->name, value->type, value->elements);
  for (const auto& node : body.nodes()) {
    std::vector<Value*> operands;
    for (const Value* operand : node->operands) operands.push_back(copy.at(operand));
    const Node* added =
        clone->AddTypedNode(node->op, std::move(operands), node->attributes, node->info, TypesOf(node->results));
    for (size_t i = 0; i < node->results.size(); ++i) {
      clone->Rename(added->results[i], node->results[i]->name);
      copy[node->results[i]] = added->results[i];
    }
  }
  for (const Output& output : body.outputs) clone->outputs.push_back({copy.at(output.value), "", 0});
  return clone;
}

}  // namespace

struct BlockGradients::Gradient {
  std::unique_ptr<Graph> both;  // forward and backward; what follows speaks of its values
  const Graph* input_body = nullptr;
  const Graph* weight_body = nullptr;
  std::vector<const Value*> input_operands;  // of the call of input_body
  std::vector<const Value*> weight_operands;
  absl::flat_hash_map<const Value*, Source> source;
  struct Contributions {
    std::vector<const Value*> values;
    std::string first_use_cell;
  };
  std::vector<Contributions> contributions;  // to each operand
};

namespace {

// Cuts the backward nodes of `gradient.both` into the bodies of B and W.
class BackwardCut {
 public:
  BackwardCut(Module& module, Graph& forward_body, const absl::flat_hash_set<const Node*>& weight_nodes)
      : module_(module), forward_body_(forward_body), weight_nodes_(weight_nodes) {}

  template <typename Gradient>
  void Run(Gradient& gradient) {
    Side input{Part::kBackwardInput, Source::Of::kInputResult, NewBody("B")};
    Side weight{Part::kBackwardWeight, Source::Of::kWeightResult, NewBody("W")};
    source_ = &gradient.source;
    // Views are made where they are read.
    for (const auto& node : gradient.both->nodes()) {
      if (node->info.phase == Phase::kForward || IsView(*node)) continue;
      if (!weight_nodes_.contains(node.get())) Add(*node, input, nullptr);
    }
    for (const auto& node : gradient.both->nodes()) {
      if (weight_nodes_.contains(node.get()) && !IsView(*node)) Add(*node, weight, &input);
    }
    for (const auto& contributions : gradient.contributions) {
      for (const Value* value : contributions.values) {
        const Value* root = RootOf(value);
        if (root->producer == nullptr) continue;
        if (root->producer->info.phase == Phase::kForward) {
          SaveForward(root);
        } else {
          Give(root, weight_nodes_.contains(root->producer) ? weight : input);
        }
      }
    }
    gradient.input_body = Keep(std::move(input), gradient.input_operands);
    gradient.weight_body = Keep(std::move(weight), gradient.weight_operands);
  }

 private:
  struct Side {
    Part part;
    Source::Of of;
    std::unique_ptr<Graph> body;
    absl::flat_hash_map<const Value*, Value*> copies = {};
    std::vector<const Value*> inputs = {};
    std::vector<const Value*> parameters = {};
  };

  std::unique_ptr<Graph> NewBody(absl::string_view letter) const {
    const std::string hint = absl::StrCat(forward_body_.name(), ".", letter);
    std::string name = hint;
    for (int suffix = 1; module_.FindBlock(name) != nullptr; ++suffix) name = absl::StrCat(hint, ".", suffix);
    return std::make_unique<Graph>(name);
  }

  void Add(const Node& node, Side& side, Side* earlier) {
    std::vector<Value*> operands;
    for (const Value* operand : node.operands) operands.push_back(Import(operand, side, earlier));
    NodeInfo info = node.info;
    info.phase = Phase::kBackward;  // views of forward values are made anew
    const Node* copy =
        side.body->AddTypedNode(node.op, std::move(operands), node.attributes, std::move(info), TypesOf(node.results));
    for (size_t i = 0; i < node.results.size(); ++i) {
      side.body->Rename(copy->results[i], node.results[i]->name);
      side.copies[node.results[i]] = copy->results[i];
    }
  }

  // The value as `side` reads it: made there, or one of its inputs.
  Value* Import(const Value* value, Side& side, Side* earlier) {
    if (const auto found = side.copies.find(value); found != side.copies.end()) return found->second;
    if (value->producer != nullptr && IsView(*value->producer)) {
      Add(*value->producer, side, earlier);
      return side.copies.at(value);
    }
    Value*& copy = side.copies[value];
    if (value->kind == Value::Kind::kConstant) {
      return copy = side.body->AddConstant(value->name, value->type, value->elements);
    }
    if (value->kind == Value::Kind::kParameter) {
      side.parameters.push_back(value);
      return copy = side.body->AddParameter(value->name, value->parameter, value->type, value->trainable);
    }
    side.inputs.push_back(value);
    copy = side.body->AddInput(value->name, value->type, std::nullopt);
    if (value->producer != nullptr && value->producer->info.phase == Phase::kForward) SaveForward(value);
    if (value->producer != nullptr && value->producer->info.phase == Phase::kBackward) Give(value, *earlier);
    return copy;
  }

  // Makes a forward result one of the block's.
  void SaveForward(const Value* value) {
    if (source_->contains(value)) return;
    Value* in_body = forward_body_.Find(value->name);
    size_t index = 0;
    while (index < forward_body_.outputs.size() && forward_body_.outputs[index].value != in_body) ++index;
    if (index == forward_body_.outputs.size()) forward_body_.outputs.push_back({in_body, "", 0});
    source_->emplace(value, Source{Source::Of::kForwardResult, index});
  }

  void Give(const Value* value, Side& side) {
    if (!source_->emplace(value, Source{side.of, side.body->outputs.size()}).second) return;
    side.body->outputs.push_back({side.copies.at(value), "", 0});
  }

  const Graph* Keep(Side side, std::vector<const Value*>& operands) {
    if (side.body->nodes().empty()) return nullptr;
    side.body->part = side.part;
    operands = std::move(side.inputs);
    operands.insert(operands.end(), side.parameters.begin(), side.parameters.end());
    module_.blocks.push_back(std::move(side.body));
    return module_.blocks.back().get();
  }

  Module& module_;
  Graph& forward_body_;
  const absl::flat_hash_set<const Node*>& weight_nodes_;
  absl::flat_hash_map<const Value*, Source>* source_ = nullptr;
};

// The nodes of W: those that end in what only contributes to a parameter.
absl::flat_hash_set<const Node*> WeightNodesOf(const Graph& both, const std::vector<Value*>& formals,
                                               const std::vector<std::vector<const Value*>>& contributions) {
  absl::flat_hash_set<const Value*> to_inputs;
  for (size_t i = 0; i < formals.size(); ++i) {
    if (formals[i]->kind != Value::Kind::kParameter) to_inputs.insert(contributions[i].begin(), contributions[i].end());
  }
  const UseMap uses = ComputeUses(both);
  absl::flat_hash_set<const Node*> weight_nodes;
  for (size_t i = 0; i < formals.size(); ++i) {
    if (formals[i]->kind != Value::Kind::kParameter) continue;
    for (const Value* value : contributions[i]) {
      const bool own = value->producer != nullptr && value->producer->info.phase == Phase::kBackward;
      if (!own || to_inputs.contains(value) || !UsesOf(uses, value).empty()) continue;
      for (const Node* link : WeightChain(value->producer, uses)) weight_nodes.insert(link);
    }
  }
  return weight_nodes;
}

// A forward call, its gradients and its backward calls, as one call's values of a block.
class CallValues {
 public:
  CallValues(Graph& graph, const Node& call, const std::vector<Value*>& gradients,
             const absl::flat_hash_map<const Value*, Source>& source)
      : graph_(graph), call_(call), gradients_(gradients), source_(source) {}

  Value* Of(const Value* value) {
    if (const auto found = made_.find(value); found != made_.end()) return found->second;
    if (const auto found = source_.find(value); found != source_.end()) return At(found->second);
    if (value->kind == Value::Kind::kConstant) {
      return made_[value] = graph_.AddConstant(value->name, value->type, value->elements);
    }
    // A view of what the block gives, which only outside can be a value of its own.
    const Node& view = *value->producer;
    Value* operand = Of(view.operands[0]);
    const NodeInfo info{CellInCall(call_, view.info.cell), call_.info.stage, Phase::kBackward, Rate::kMicro};
    const Node* node = graph_.AddTypedNode(view.op, {operand}, view.attributes, info, {value->type}, value->name);
    return made_[value] = node->results[0];
  }

  const Node* AddCall(const Graph* body, const std::vector<const Value*>& operands) {
    if (body == nullptr) return nullptr;
    std::vector<Value*> given;
    for (const Value* operand : operands) given.push_back(Of(operand));
    std::vector<TensorType> types;
    for (const Output& output : body->outputs) types.push_back(output.value->type);
    AttributeMap attributes = call_.attributes;
    attributes["block"] = body->name();
    const NodeInfo info{call_.info.cell, call_.info.stage, Phase::kBackward, Rate::kMicro};
    Node* node = graph_.AddTypedNode(kCall, std::move(given), std::move(attributes), info, types);
    for (size_t i = 0; i < types.size(); ++i) graph_.Rename(node->results[i], body->outputs[i].value->name);
    return (body->part == Part::kBackwardWeight ? weight_call_ : input_call_) = node;
  }

 private:
  Value* At(const Source& source) const {
    switch (source.of) {
      case Source::Of::kOperand:
        return call_.operands[source.index];
      case Source::Of::kGradient:
        return gradients_[source.index];
      case Source::Of::kForwardResult:
        return call_.results[source.index];
      case Source::Of::kInputResult:
        return input_call_->results[source.index];
      case Source::Of::kWeightResult:
        return weight_call_->results[source.index];
    }
    return nullptr;
  }

  Graph& graph_;
  const Node& call_;
  const std::vector<Value*>& gradients_;
  const absl::flat_hash_map<const Value*, Source>& source_;
  const Node* input_call_ = nullptr;
  const Node* weight_call_ = nullptr;
  absl::flat_hash_map<const Value*, Value*> made_;
};

std::string KeyOf(const Node& call, const BlockGradients::Wanted& wanted) {
  std::string key = GetString(call.attributes, "block", "");
  absl::StrAppend(&key, "|", absl::StrJoin(wanted.gradients, ","), "|", absl::StrJoin(wanted.operands, ","), "|",
                  absl::StrJoin(wanted.apart, ","));
  return key;
}

}  // namespace

BlockGradients::BlockGradients(Module& module) : module_(module) {}
BlockGradients::~BlockGradients() = default;

absl::StatusOr<const BlockGradients::Gradient*> BlockGradients::FindOrMake(const Node& call, const Wanted& wanted) {
  std::unique_ptr<Gradient>& entry = gradients_[KeyOf(call, wanted)];
  if (entry != nullptr) return entry.get();
  Graph& body = *BodyOf(module_, call);
  auto gradient = std::make_unique<Gradient>();
  gradient->both = Clone(body);
  Graph& both = *gradient->both;
  const std::vector<Value*> formals = FormalsOf(both);
  absl::flat_hash_set<const Value*> active;
  for (size_t i = 0; i < formals.size(); ++i) {
    gradient->source.emplace(formals[i], Source{Source::Of::kOperand, i});
    if (wanted.operands[i]) active.insert(formals[i]);
  }
  ReverseSweep sweep(both, ReachedValues(both, std::move(active), *this), *this);
  size_t given = 0;
  for (size_t i = 0; i < wanted.gradients.size(); ++i) {
    const Value& output = *both.outputs[i].value;
    for (int addend = 0; addend < wanted.gradients[i]; ++addend) {
      Value* formal = both.AddInput(absl::StrCat("d.", output.name), output.type, std::nullopt);
      gradient->source.emplace(formal, Source{Source::Of::kGradient, given++});
      sweep.Seed(&output, formal);
    }
  }
  RETURN_IF_ERROR(sweep.Run());
  std::vector<std::vector<const Value*>> contributions;
  for (size_t i = 0; i < formals.size(); ++i) {
    const std::vector<Value*>& found = sweep.ContributionsTo(formals[i]);
    std::vector<const Value*> values(found.begin(), found.end());
    if (values.size() > 1 && formals[i]->kind != Value::Kind::kParameter && !wanted.apart[i]) {
      GraphBuilder builder(both, {sweep.FirstUseCell(formals[i]), std::nullopt, Phase::kBackward, Rate::kMicro});
      values = {ReverseSweep::SumInProgramOrder(builder, found, formals[i])};
    }
    gradient->contributions.push_back({values, values.empty() ? "" : sweep.FirstUseCell(formals[i])});
    contributions.push_back(std::move(values));
  }
  const absl::flat_hash_set<const Node*> weight_nodes = WeightNodesOf(both, formals, contributions);
  BackwardCut(module_, body, weight_nodes).Run(*gradient);
  entry = std::move(gradient);
  return entry.get();
}

absl::StatusOr<std::vector<BlockGradients::Contributions>> BlockGradients::Differentiate(
    Graph& graph, Node& call, const std::vector<Value*>& gradients, const Wanted& wanted) {
  absl::StatusOr<const Gradient*> gradient = FindOrMake(call, wanted);
  if (!gradient.ok()) return Annotate(gradient.status(), absl::StrCat("called by cell ", call.info.cell));
  AddMissingResults(graph, call);
  CallValues values(graph, call, gradients, (*gradient)->source);
  values.AddCall((*gradient)->input_body, (*gradient)->input_operands);
  values.AddCall((*gradient)->weight_body, (*gradient)->weight_operands);
  std::vector<Contributions> contributions;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Gradient::Contributions& found = (*gradient)->contributions[i];
    contributions.emplace_back();
    for (const Value* value : found.values) {
      Value* mapped = values.Of(value);
      const bool is_new = mapped->producer != nullptr && mapped->producer->info.phase == Phase::kBackward &&
                          value->producer != nullptr && value->producer->info.phase == Phase::kBackward;
      if (is_new) graph.Rename(mapped, absl::StrCat("d.", call.operands[i]->name));
      contributions.back().values.push_back(mapped);
    }
    if (!found.values.empty()) contributions.back().first_use_cell = CellInCall(call, found.first_use_cell);
  }
  return contributions;
}

void BlockGradients::AddMissingResults(Graph& graph, Node& call) const {
  const std::vector<Output>& outputs = BodyOf(module_, call)->outputs;
  for (size_t i = call.results.size(); i < outputs.size(); ++i) {
    graph.AddResult(&call, outputs[i].value->type, outputs[i].value->name);
  }
}

bool BlockGradients::ReadsOwnResult(const Node& call, size_t index) const {
  const Graph& body = *BodyOf(module_, call);
  const Value* result = body.outputs[index].value;
  return std::any_of(body.nodes().begin(), body.nodes().end(), [&](const auto& node) {
    return std::find(node->operands.begin(), node->operands.end(), result) != node->operands.end();
  });
}

std::vector<bool> BlockGradients::ReachedResults(const Node& call, const absl::flat_hash_set<const Value*>& active) {
  const Graph& body = *BodyOf(module_, call);
  const std::vector<Value*> formals = FormalsOf(body);
  absl::flat_hash_set<const Value*> from;
  std::string key = absl::StrCat(body.name(), "|");
  for (size_t i = 0; i < formals.size(); ++i) {
    const bool is_active = active.contains(call.operands[i]);
    if (is_active) from.insert(formals[i]);
    key += is_active ? '1' : '0';
  }
  const auto known = reached_.find(key);
  if (known != reached_.end()) return known->second;
  const absl::flat_hash_set<const Value*> reached = ReachedValues(body, std::move(from), *this);
  std::vector<bool> results;
  for (const Output& output : body.outputs) results.push_back(reached.contains(output.value));
  return reached_[key] = results;
}

}  // namespace pipeloom
