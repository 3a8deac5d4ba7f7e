#include "plugin/cells/build_context.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/digest.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {

Var::Var(const ParameterPtr& parameter) {
  if (parameter != nullptr && parameter->context_ != nullptr) *this = parameter->context_->ParameterValue(*parameter);
}

int64_t Var::dim(int axis) const {
  const TensorType type = this->type();
  const int from_first = axis < 0 ? axis + type.rank() : axis;
  if (from_first >= 0 && from_first < type.rank()) return type.shape[static_cast<size_t>(from_first)];
  Refuse(absl::StrCat("a value of type ", type.ToString(), " has no axis ", axis));
  return 1;
}

Var Var::Refuse(absl::string_view why) const {
  return context_ == nullptr ? Var() : context_->Refuse(absl::InvalidArgumentError(why));
}

BuildContext::BuildContext(const CellTree& tree, const std::vector<ParameterPtr>& trained, Graph& graph,
                           BuildPurpose purpose)
    : tree_(tree), graph_(graph), purpose_(purpose) {
  for (const ParameterPtr& parameter : trained) trained_.insert(parameter.get());
  for (const CellTree::NamedParameter& named : tree_.parameters()) {
    PIPELOOM_CHECK(named.parameter->context_ == nullptr, "two graphs are built at once of parameter ", named.name);
    named.parameter->context_ = this;
  }
}

BuildContext::~BuildContext() {
  for (const CellTree::NamedParameter& named : tree_.parameters()) named.parameter->context_ = nullptr;
}

Var BuildContext::Handle(Value* value) {
  Var var;
  var.context_ = this;
  var.value_ = value;
  return var;
}

Var BuildContext::AddInput(absl::string_view hint, TensorType type, int batch_axis) {
  return Handle(graph_.AddInput(hint, std::move(type), batch_axis));
}

std::vector<Var> BuildContext::Call(Cell& cell, const std::vector<Var>& inputs) {
  if (!status_.ok()) return {Handle(nullptr)};
  const std::string* path = tree_.PathOf(cell);
  if (path == nullptr) {
    return {Refuse(absl::InvalidArgumentError(
        "a cell is called that is no child of any cell of the network; add it with AddCell in a constructor"))};
  }
  cells_.push_back(*path);
  const bool becomes_call = cell.lazy_inline() && !in_lazy_inline_;
  in_lazy_inline_ |= becomes_call;
  const size_t begin = graph_.nodes().size();
  std::vector<Var> outputs = cell.Construct(inputs);
  if (becomes_call) {
    in_lazy_inline_ = false;
    const bool can = std::all_of(graph_.nodes().begin() + static_cast<std::ptrdiff_t>(begin), graph_.nodes().end(),
                                 [](const auto& node) { return CanStandInABlock(*node); });
    if (can && graph_.nodes().size() > begin) lazy_inline_.push_back({{{begin, graph_.nodes().size(), *path}}});
  }
  for (size_t i = 0; i < outputs.size() && status_.ok(); ++i) {
    if (!outputs[i].has_value()) Refuse(absl::InvalidArgumentError(absl::StrCat("result ", i, " has no value")));
  }
  if (outputs.empty()) Refuse(absl::InvalidArgumentError("the cell returns nothing"));
  cells_.pop_back();
  return status_.ok() ? outputs : std::vector<Var>{Handle(nullptr)};
}

Var BuildContext::Emit(absl::string_view op, const std::vector<Var>& operands, AttributeMap attributes) {
  if (!status_.ok()) return Handle(nullptr);
  std::vector<Value*> values;
  for (const Var& operand : operands) {
    if (!operand.has_value()) {
      return Refuse(absl::InvalidArgumentError(
          absl::StrCat("operand ", values.size(), " of ", op,
                       " has no value; is it a parameter that no cell of the network has? Make it with AddParameter")));
    }
    values.push_back(operand.value());
  }
  NodeInfo info;
  info.cell = cells_.empty() ? "" : cells_.back();
  const absl::StatusOr<Node*> node = graph_.AddNode(op, std::move(values), std::move(attributes), std::move(info));
  if (!node.ok()) return Refuse(node.status());
  return Handle((*node)->results.empty() ? nullptr : (*node)->results[0]);
}

Var BuildContext::ParameterValue(const Parameter& parameter) {
  Value*& value = values_[&parameter];
  if (value == nullptr) {
    for (const CellTree::NamedParameter& named : tree_.parameters()) {
      if (named.parameter.get() != &parameter) continue;
      value = graph_.AddParameter(named.name, named.name, TensorType{DType::kFloat32, parameter.shape()},
                                  parameter.requires_grad() && trained_.contains(&parameter));
    }
  }
  return Handle(value);
}

Var BuildContext::Step() {
  if (step_ == nullptr) step_ = graph_.AddInput(kStepInput, TensorType{DType::kInt64, {}}, std::nullopt);
  return Handle(step_);
}

Var BuildContext::CountLabels(Var labels, int64_t ignore_index) {
  Value* value = labels.value();
  while (value->kind == Value::Kind::kResult && value->producer->op == "reshape") value = value->producer->operands[0];
  if (value->kind != Value::Kind::kInput || !value->batch_axis.has_value()) {
    return Refuse(absl::InvalidArgumentError(
        absl::StrCat("the mean is over the labels of the whole step, which are counted in an input of it, but %",
                     value->name, value->producer == nullptr ? "" : absl::StrCat(" of op ", value->producer->op),
                     " is none; give the labels as an input, or use reduction 'sum' and divide")));
  }
  return Emit("labels_per_micro_batch", {Handle(value)}, {{"ignore_index", ignore_index}});
}

int64_t BuildContext::NextSite() {
  const std::string cell = cells_.empty() ? "" : cells_.back();
  return static_cast<int64_t>(Digest(absl::StrCat(cell, "#", sites_[cell]++)));
}

Var BuildContext::Refuse(const absl::Status& why) {
  if (status_.ok()) {
    const bool inside = !cells_.empty() && !cells_.back().empty();
    status_ = inside ? Annotate(why, absl::StrCat("cell '", cells_.back(), "'")) : why;
  }
  return Handle(nullptr);
}

}  // namespace pipeloom
