#include "passes/outline.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/chunk_values.h"
#include "passes/ir/op_table.h"

namespace pipeloom {
namespace {

struct SignatureHash {
  size_t operator()(const Node* node) const {
    size_t hash = absl::HashOf(node->op, node->operands.size());
    for (const auto& attribute : node->attributes) {
      std::visit([&](const auto& value) { hash = absl::HashOf(hash, attribute.first, value); }, attribute.second);
    }
    for (const auto* values : {&node->operands, &node->results}) {
      for (const Value* value : *values) hash = absl::HashOf(hash, value->type.dtype, value->type.shape);
    }
    return hash;
  }
};

bool SameTypes(const std::vector<Value*>& a, const std::vector<Value*>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Value* x, const Value* y) { return x->type == y->type; });
}

struct SignatureEqual {
  bool operator()(const Node* a, const Node* b) const {
    return a->op == b->op && a->info.phase == b->info.phase && a->info.rate == b->info.rate &&
           SameTypes(a->operands, b->operands) && SameTypes(a->results, b->results) && a->attributes == b->attributes;
  }
};

// `path` without the cell that covers it.
absl::string_view InnerPath(absl::string_view path, absl::string_view cell) {
  return cell.empty() ? path : path.substr(std::min(path.size(), cell.size() + 1));
}

template <typename Visit>
void ForEachNode(const Graph& graph, const Region& region, Visit visit) {
  for (size_t member = 0; member < region.members.size(); ++member) {
    for (size_t at = region.members[member].begin; at < region.members[member].end; ++at) {
      visit(*graph.nodes()[at], member);
    }
  }
}

// What a region reads from outside: one operand of its call each, in the order of their first use.
struct Leaves {
  std::vector<Value*> inputs;
  std::vector<Value*> parameters;
  std::vector<size_t> member_of_parameter;  // that uses it first
  std::vector<Value*> constants;            // stand in the body
};

Leaves LeavesOf(const Graph& graph, const Region& region) {
  Leaves leaves;
  absl::flat_hash_set<const Value*> known;
  ForEachNode(graph, region, [&](const Node& node, size_t member) {
    for (Value* operand : node.operands) {
      if (!known.insert(operand).second) continue;
      if (operand->kind == Value::Kind::kConstant) {
        leaves.constants.push_back(operand);
      } else if (operand->kind == Value::Kind::kParameter) {
        leaves.parameters.push_back(operand);
        leaves.member_of_parameter.push_back(member);
      } else {
        leaves.inputs.push_back(operand);
      }
    }
    known.insert(node.results.begin(), node.results.end());
  });
  return leaves;
}

// A result of a region: of which of its nodes, counted from its first.
struct ResultPlace {
  size_t node;
  size_t result;
  friend bool operator<(const ResultPlace& a, const ResultPlace& b) {
    return a.node != b.node ? a.node < b.node : a.result < b.result;
  }
};

// Moves regions of one graph into blocks.
class Outliner {
 public:
  Outliner(Module& module, Graph& graph) : module_(module), graph_(graph) {
    for (size_t at = 0; at < graph.nodes().size(); ++at) {
      position_[graph.nodes()[at].get()] = at;
      for (const Value* operand : graph.nodes()[at]->operands) last_use_[operand] = at;
    }
    for (const Output& output : graph.outputs) last_use_[output.value] = graph.nodes().size();
    old_nodes_ = graph.nodes().size();
  }

  // Regions that compute the same.
  void Outline(const std::vector<const Region*>& calls) {
    const std::vector<ResultPlace> given = GivenResults(calls);
    const Graph& body = MakeBody(*calls[0], given);
    for (const Region* region : calls) AddCall(*region, body, given);
  }

  // Puts the calls in the places of their regions.
  void Finish() {
    auto& nodes = graph_.mutable_nodes();
    std::vector<std::unique_ptr<Node>> old(old_nodes_);
    std::move(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(old_nodes_), old.begin());
    std::vector<std::unique_ptr<Node>> calls(calls_.size());
    std::move(nodes.begin() + static_cast<std::ptrdiff_t>(old_nodes_), nodes.end(), calls.begin());
    nodes.clear();
    std::vector<std::unique_ptr<Node>> dead;
    size_t next = 0;
    std::sort(order_.begin(), order_.end());
    for (size_t at = 0; at < old.size();) {
      if (next == order_.size() || order_[next].first != at) {
        nodes.push_back(std::move(old[at++]));
        continue;
      }
      const Call& call = calls_[order_[next].second];
      nodes.push_back(std::move(calls[order_[next++].second]));
      for (; at < call.end; ++at) {
        const bool stays = views_outside_.contains(old[at].get());
        (stays ? nodes : dead).push_back(std::move(old[at]));
      }
    }
    for (const auto& node : nodes) {
      for (Value*& operand : node->operands) Replace(operand);
    }
    for (Output& output : graph_.outputs) Replace(output.value);
    std::vector<const Node*> removed;
    for (auto& node : dead) {
      removed.push_back(node.get());
      nodes.push_back(std::move(node));
    }
    std::vector<std::pair<Value*, std::string>> names;
    for (const auto& [from, to] : replacement_) names.emplace_back(to, from->name);
    graph_.RemoveNodes(removed);
    graph_.RemoveUnusedLeaves();
    std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    for (const auto& [value, name] : names) graph_.Rename(value, name);
  }

 private:
  struct Call {
    size_t end;  // of its region
  };

  void Replace(Value*& value) const {
    if (const auto found = replacement_.find(value); found != replacement_.end()) value = found->second;
  }

  bool IsInside(const Value* value, const Region& region) const {
    if (value->producer == nullptr) return false;
    const auto at = position_.find(value->producer);
    return at != position_.end() && at->second >= region.begin() && at->second < region.end();
  }

  bool IsReadAfter(const Value* value, const Region& region) const {
    const auto last = last_use_.find(value);
    return last != last_use_.end() && last->second >= region.end();
  }

  // Those that any call gives, in program order. A view that is read outside stays there, and its operand is given.
  std::vector<ResultPlace> GivenResults(const std::vector<const Region*>& calls) {
    std::vector<ResultPlace> given;
    absl::flat_hash_set<std::pair<size_t, size_t>> known;
    for (const Region* region : calls) {
      for (size_t at = region->begin(); at < region->end(); ++at) {
        for (const Value* result : graph_.nodes()[at]->results) {
          if (!IsReadAfter(result, *region)) continue;
          const Value* root = result;
          while (IsInside(root, *region) && IsView(*root->producer)) {
            views_outside_.insert(root->producer);
            root = root->producer->operands[0];
          }
          if (!IsInside(root, *region)) continue;
          const auto& results = root->producer->results;
          const ResultPlace place{
              position_.at(root->producer) - region->begin(),
              static_cast<size_t>(std::find(results.begin(), results.end(), root) - results.begin())};
          if (known.insert({place.node, place.result}).second) given.push_back(place);
        }
      }
    }
    std::sort(given.begin(), given.end());
    return given;
  }

  std::string FreeBlockName(absl::string_view cell) const {
    const std::string hint = cell.empty() ? "cell" : std::string(cell);
    std::string name = hint;
    for (int suffix = 1; module_.FindBlock(name) != nullptr; ++suffix) name = absl::StrCat(hint, ".", suffix);
    return name;
  }

  const Graph& MakeBody(const Region& region, const std::vector<ResultPlace>& given) {
    auto body = std::make_unique<Graph>(FreeBlockName(region.members[0].cell));
    absl::flat_hash_map<const Value*, Value*> in_body;
    const Leaves leaves = LeavesOf(graph_, region);
    for (const Value* input : leaves.inputs) in_body[input] = body->AddInput(input->name, input->type, std::nullopt);
    for (size_t i = 0; i < leaves.parameters.size(); ++i) {
      const Value& parameter = *leaves.parameters[i];
      const std::string name = NameInBody(parameter.parameter, region, leaves.member_of_parameter[i], *body);
      in_body[&parameter] = body->AddParameter(name, name, parameter.type, parameter.trainable);
    }
    for (const Value* constant : leaves.constants) {
      in_body[constant] = body->AddConstant(constant->name, constant->type, constant->elements);
    }
    std::vector<Node*> copies;
    ForEachNode(graph_, region, [&](const Node& node, size_t member) {
      std::vector<Value*> operands;
      for (const Value* operand : node.operands) operands.push_back(in_body.at(operand));
      std::vector<TensorType> types;
      for (const Value* result : node.results) types.push_back(result->type);
      NodeInfo info = node.info;
      const absl::string_view inner = InnerPath(node.info.cell, region.members[member].cell);
      info.cell =
          region.members.size() == 1 ? std::string(inner) : absl::StrCat(member, inner.empty() ? "" : ".", inner);
      Node* copy = body->AddTypedNode(node.op, std::move(operands), node.attributes, std::move(info), types);
      for (size_t i = 0; i < types.size(); ++i) {
        body->Rename(copy->results[i], node.results[i]->name);
        in_body[node.results[i]] = copy->results[i];
      }
      copies.push_back(copy);
    });
    for (const ResultPlace& place : given) body->outputs.push_back({copies[place.node]->results[place.result], "", 0});
    RemoveUnreadViews(*body);
    module_.blocks.push_back(std::move(body));
    return *module_.blocks.back();
  }

  // The parameter's name below the cell that it belongs to.
  static std::string NameInBody(const std::string& parameter, const Region& region, size_t member, const Graph& body) {
    const std::string& cell = region.members[member].cell;
    if (!absl::StartsWith(parameter, cell + ".")) return parameter;
    const absl::string_view inner = InnerPath(parameter, cell);
    std::string name = region.members.size() == 1 ? std::string(inner) : absl::StrCat(member, ".", inner);
    return body.FindParameter(name) == nullptr ? name : parameter;
  }

  static void RemoveUnreadViews(Graph& body) {
    absl::flat_hash_set<const Value*> read;
    for (const Output& output : body.outputs) read.insert(output.value);
    std::vector<const Node*> unread;
    for (auto node = body.nodes().rbegin(); node != body.nodes().rend(); ++node) {
      if (IsView(**node) && !read.contains((*node)->results[0])) {
        unread.push_back(node->get());
      } else {
        read.insert((*node)->operands.begin(), (*node)->operands.end());
      }
    }
    body.RemoveNodes(unread);
  }

  void AddCall(const Region& region, const Graph& body, const std::vector<ResultPlace>& given) {
    const Leaves leaves = LeavesOf(graph_, region);
    std::vector<Value*> operands = leaves.inputs;
    operands.insert(operands.end(), leaves.parameters.begin(), leaves.parameters.end());
    std::vector<TensorType> types;
    for (const Output& output : body.outputs) types.push_back(output.value->type);
    AttributeMap attributes = {{"block", body.name()}};
    if (region.members.size() > 1) {
      attributes["cells"] = absl::StrJoin(
          region.members, ",", [](std::string* out, const Region::Member& member) { out->append(member.cell); });
    }
    NodeInfo info = graph_.nodes()[region.begin()]->info;
    info.cell = region.members[0].cell;
    const Node* call = graph_.AddTypedNode(kCall, std::move(operands), std::move(attributes), std::move(info), types);
    for (size_t i = 0; i < given.size(); ++i) {
      replacement_[graph_.nodes()[region.begin() + given[i].node]->results[given[i].result]] = call->results[i];
    }
    order_.emplace_back(region.begin(), calls_.size());
    calls_.push_back({region.end()});
  }

  Module& module_;
  Graph& graph_;
  size_t old_nodes_ = 0;
  absl::flat_hash_map<const Node*, size_t> position_;
  absl::flat_hash_map<const Value*, size_t> last_use_;  // position; that of the end for an output
  absl::flat_hash_set<const Node*> views_outside_;
  std::vector<Call> calls_;                       // in the order of adding
  std::vector<std::pair<size_t, size_t>> order_;  // first node of the region, and its call
  absl::flat_hash_map<const Value*, Value*> replacement_;
};

}  // namespace

bool CanStandInABlock(const Node& node) {
  const OpDef* op = FindOp(node.op);
  return node.info.phase == Phase::kForward && node.info.rate == Rate::kMicro && !node.info.stage && node.op != kCall &&
         !(op != nullptr && op->traits.whole_step);
}

RegionCodes::RegionCodes(const Graph& graph) : graph_(graph) {
  absl::flat_hash_map<const Node*, int64_t, SignatureHash, SignatureEqual> known;
  signature_.reserve(graph.nodes().size());
  for (const auto& node : graph.nodes()) {
    signature_.push_back(known.emplace(node.get(), static_cast<int64_t>(known.size())).first->second);
  }
}

int64_t RegionCodes::ConstantCode(const Value& constant) {
  const auto same = std::find_if(constants_.begin(), constants_.end(), [&](const Value* other) {
    return other == &constant || (other->type == constant.type && other->elements == constant.elements);
  });
  const int64_t code = same - constants_.begin();
  if (same == constants_.end()) constants_.push_back(&constant);
  return code;
}

std::vector<int64_t> RegionCodes::Encode(const Region& region) {
  constexpr int64_t kTrained = -1;
  constexpr int64_t kFrozen = -2;
  constexpr int64_t kInput = -3;
  constexpr int64_t kConstant = -4;
  std::vector<int64_t> code;
  absl::flat_hash_map<const Value*, int64_t> number;  // in the order of their first use or making
  for (size_t member = 0; member < region.members.size(); ++member) {
    for (size_t at = region.members[member].begin; at < region.members[member].end; ++at) {
      const Node& node = *graph_.nodes()[at];
      const absl::string_view inner = InnerPath(node.info.cell, region.members[member].cell);
      const int64_t cell = inner_cells_.emplace(inner, static_cast<int64_t>(inner_cells_.size())).first->second;
      code.insert(code.end(), {signature_[at], static_cast<int64_t>(member), cell});
      for (const Value* operand : node.operands) {
        if (operand->kind == Value::Kind::kConstant) {
          code.insert(code.end(), {kConstant, ConstantCode(*operand)});
          continue;
        }
        const auto [entry, is_new] = number.emplace(operand, static_cast<int64_t>(number.size()));
        if (is_new && operand->kind == Value::Kind::kParameter) {
          code.push_back(operand->trainable ? kTrained : kFrozen);
        } else if (is_new) {
          code.push_back(kInput);
        }
        code.push_back(entry->second);
      }
      for (const Value* result : node.results) number.emplace(result, static_cast<int64_t>(number.size()));
    }
  }
  return code;
}

bool OutlineRegions(Module& module, Graph& graph, const std::vector<Region>& regions, size_t fewest_calls) {
  RegionCodes codes(graph);
  absl::flat_hash_map<std::vector<int64_t>, size_t> class_of_code;
  std::vector<std::vector<const Region*>> classes;
  for (const Region& region : regions) {
    const auto [entry, is_new] = class_of_code.emplace(codes.Encode(region), classes.size());
    if (is_new) classes.emplace_back();
    classes[entry->second].push_back(&region);
  }
  Outliner outliner(module, graph);
  bool changed = false;
  for (const std::vector<const Region*>& calls : classes) {
    if (calls.size() < fewest_calls) continue;
    outliner.Outline(calls);
    changed = true;
  }
  if (changed) outliner.Finish();
  return changed;
}

}  // namespace pipeloom
