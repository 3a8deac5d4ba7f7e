#include "plugin/mindspore/import_body.h"

#include "ir/graph_utils.h"
#include "plugin/mindspore/effects.h"
#include "plugin/mindspore/import_ops.h"

namespace pipeloom::ms {
namespace {

// Looks through what has no cell of its own.
host::AnfNodePtr Behind(host::AnfNodePtr node) {
  for (std::string op = OpName(node); op == "TupleGetItem" || op == "Depend" || op == "MakeTuple"; op = OpName(node)) {
    node = node->cast<host::CNodePtr>()->input(1);
  }
  return node;
}

}  // namespace

BodyImport::BodyImport(const host::FuncGraphPtr& graph, StepContext* context)
    : graph_(graph), context_(*context), order_(host::TopoSort(graph->get_return())), kinds_(FindKinds(order_)) {}

Item BodyImport::WriteNodes() {
  for (const host::AnfNodePtr& node : order_) {
    if (!node->isa<host::CNode>() || IsEffectOrder(node) || node == graph_->get_return()) continue;
    const Kind kind = KindOf(node);
    if (kind != Kind::kFree || WritesParameter(OpName(node))) ItemOf(node, PaceOf(kind));
  }
  return ItemOf(graph_->output(), Pace::kStep);
}

Kind BodyImport::KindOfValue(const Tensor& tensor) const {
  const auto known = kind_of_value_.find(tensor.value);
  return known == kind_of_value_.end() ? Kind::kForward : known->second;
}

const Item& BodyImport::ItemOf(const host::AnfNodePtr& node, Pace pace) {
  const auto cnode = node->cast<host::CNodePtr>();
  if (cnode != nullptr && KindOf(node) != Kind::kFree) pace = PaceOf(KindOf(node));
  if (cnode == nullptr) pace = Pace::kStep;
  const std::pair<const host::AnfNode*, Pace> key(node.get(), pace);
  const auto known = items_.find(key);
  if (known != items_.end()) return known->second;
  return items_[key] = MakeItem(node, pace);
}

Item BodyImport::MakeItem(const host::AnfNodePtr& node, Pace pace) {
  if (node->isa<host::ValueNode>()) return Item::Of(node->cast<host::ValueNodePtr>()->value());
  if (node->isa<host::Parameter>()) return ParameterItem(node->cast<host::ParameterPtr>());
  const auto cnode = node->cast<host::CNodePtr>();
  const std::string op = OpName(node);
  CheckReadsAreCurrent(cnode);
  if (op.empty()) return CallItem(cnode, pace);
  if (op == "Load") return ItemOf(cnode->input(1), pace);
  if (op == "Depend") return ItemOf(cnode->input(1), pace);
  if (op == "MakeTuple") return Item::TupleOf(Operands(cnode, pace));
  if (op == "TupleGetItem") return ElementItem(cnode, pace);
  if (op == kSlice) return SliceItem(cnode);
  if (op == kMerge) return MergeItem(cnode);
  if (op == kMergeGrad || op == kBorder || op == kBorderGrad || op == kReduce) return PassItem(cnode, pace);
  const Place place = PlaceOf(cnode, pace);
  Item item = ImportOp(OpImport(writer_.get(), cnode, Operands(cnode, pace), place));
  const Kind kind = pace == Pace::kStep ? Kind::kStep : KindOf(node);
  if (item.tensor) kind_of_value_.emplace(item.tensor->value, kind);
  for (const Item& element : item.elements) {
    if (element.tensor) kind_of_value_.emplace(element.tensor->value, kind);
  }
  return item;
}

std::vector<Item> BodyImport::Operands(const host::CNodePtr& node, Pace pace) {
  std::vector<Item> operands;
  for (size_t i = 1; i < node->size(); ++i) {
    if (!IsEffectOrder(node->input(i))) operands.push_back(ItemOf(node->input(i), pace));
  }
  return operands;
}

Item BodyImport::CallItem(const host::CNodePtr& node, Pace pace) {
  const auto body = host::GetValueNode<host::FuncGraphPtr>(node->input(0));
  if (body == nullptr) {
    throw Refused(Describe(node) + " chooses at run time what it calls; a step has the same nodes each time");
  }
  const Block& block = context_.BlockOf(body);
  const std::vector<Item> arguments = Operands(node, pace);
  std::vector<Tensor> operands;
  for (const size_t i : block.operands) {
    if (!arguments[i].tensor) throw Refused(Describe(node) + ": argument " + std::to_string(i) + " is no tensor");
    operands.push_back(*arguments[i].tensor);
  }
  std::vector<Item> results;
  for (const Tensor& result : writer_->AddCall(block.graph, operands, block.results, PlaceOf(node, pace))) {
    kind_of_value_.emplace(result.value, KindOf(node));
    results.push_back(Item::Of(result));
  }
  return block.gives_tuple ? Item::TupleOf(std::move(results)) : results[0];
}

Item BodyImport::ElementItem(const host::CNodePtr& node, Pace pace) {
  const Item& tuple = ItemOf(node->input(1), pace);
  const auto index = static_cast<size_t>(IntOf(ItemOf(node->input(2), pace).constant));
  if (tuple.constant != nullptr) return Item::Of(tuple.constant->cast<host::ValueSequencePtr>()->value().at(index));
  if (!tuple.is_tuple || index >= tuple.elements.size()) {
    throw Refused(Describe(node) + " takes element " + std::to_string(index) + " of what has none of that number");
  }
  return tuple.elements[index];
}

Item BodyImport::MergeItem(const host::CNodePtr& node) {
  Item item = ItemOf(node->input(1), Pace::kMicro);
  if (!item.tensor) throw Refused(Describe(node) + " merges what is no tensor");
  item.reduce = StringAttribute(node, "reduce");
  return item;
}

// Marks that say where a value is, and change nothing of it.
Item BodyImport::PassItem(const host::CNodePtr& node, Pace pace) {
  const std::string op = OpName(node);
  if (op == kBorder || op == kBorderGrad) {
    // Forward, side 0 leads into the cell; backward, side 1 does.
    const bool into = IntAttribute(node, "side") == (op == kBorder ? 0 : 1);
    cell_.emplace(node.get(), into ? StringAttribute(node, "cell") : "");
  }
  const Item& item = ItemOf(node->input(1), pace);
  const double scale = op == kReduce ? FloatAttribute(node, "scale", 1) : 1;
  if (scale == 1 || !item.tensor) return item;
  // What the loss was multiplied by, so that small gradients are not lost.
  const Place place = PlaceOf(node, Pace::kStep);
  const Tensor share =
      writer_->AddConstant({PIPELOOM_F32, {}}, {static_cast<double>(1.0F / static_cast<float>(scale))});
  return Item::Of(writer_->Add("mul", {*item.tensor, share}, item.tensor->type, {}, place));
}

// A node is in the cell whose border was the last on the way to it; the way of a gradient counts first for gradients.
std::string BodyImport::CellOf(const host::CNodePtr& node) const {
  const bool backward = KindOf(node) == Kind::kBackward;
  std::string cell;
  bool from_gradient = false;
  for (const host::AnfNodePtr& input : node->inputs()) {
    const host::AnfNodePtr operand = Behind(input);
    const auto known = cell_.find(operand.get());
    if (known == cell_.end()) continue;
    const bool gradient = KindOf(operand) == Kind::kBackward;
    const bool first = cell.empty() && !from_gradient;
    if (!first && !(backward && gradient && !from_gradient)) continue;
    cell = known->second;
    from_gradient = gradient;
  }
  return cell;
}

Place BodyImport::PlaceOf(const host::CNodePtr& node, Pace pace) {
  Place place;
  if (pace == Pace::kStep) {
    place.phase = PIPELOOM_UPDATE;
    return place;
  }
  place.phase = KindOf(node) == Kind::kBackward ? PIPELOOM_BACKWARD : PIPELOOM_FORWARD;
  place.cell = CellOf(node);
  if (KindOf(node) != Kind::kFree) cell_[node.get()] = place.cell;
  return place;
}

}  // namespace pipeloom::ms
