#include "plugin/cells/cell.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "plugin/cells/build_context.h"

namespace pipeloom {
namespace {

// Every use of a cell comes through here, so that the context knows which cell the nodes belong to.
std::vector<Var> UseCell(Cell& cell, const std::vector<Var>& inputs) {
  for (const Var& input : inputs) {
    if (input.context() != nullptr) return input.context()->Call(cell, inputs);
  }
  return {};
}

Var Only(const std::vector<Var>& outputs) {
  if (outputs.size() == 1) return outputs[0];
  if (outputs.empty()) return Var();
  return outputs[0].Refuse(
      absl::StrCat("a cell with ", outputs.size(), " results is called with a vector of inputs, cell({x, ...})"));
}

}  // namespace

Var Cell::operator()(Var x) { return Only(UseCell(*this, std::vector<Var>{x})); }

Var Cell::operator()(Var x, Var y) { return Only(UseCell(*this, std::vector<Var>{x, y})); }

std::vector<Var> Cell::operator()(const std::vector<Var>& inputs) { return UseCell(*this, inputs); }

Var Cell::Construct(Var x) { return x.Refuse("the cell does not take 1 input"); }

Var Cell::Construct(Var x, Var) { return x.Refuse("the cell does not take 2 inputs"); }

std::vector<Var> Cell::Construct(const std::vector<Var>& inputs) {
  if (inputs.size() == 1) return {Construct(inputs[0])};
  if (inputs.size() == 2) return {Construct(inputs[0], inputs[1])};
  if (inputs.empty()) return {};
  return {inputs[0].Refuse(absl::StrCat("the cell does not take ", inputs.size(), " inputs"))};
}

ParameterPtr& Cell::AddParameter(std::string name, Shape shape, Initializer initializer) {
  parameters_.push_back({std::move(name), std::make_shared<Parameter>(std::move(shape), std::move(initializer))});
  return parameters_.back().parameter;
}

void Cell::SetRequiresGrad(bool requires_grad) {
  for (const ParameterPtr& parameter : Parameters()) parameter->SetRequiresGrad(requires_grad);
}

void Cell::SetSeed(uint64_t seed) {
  seed_ = seed;
  for (const NamedParameter& named : parameters_) {
    if (named.parameter != nullptr) named.parameter->SetSeed(seed);
  }
  for (const Child& child : children_) child.cell->SetSeed(seed);
}

std::vector<ParameterPtr> Cell::Parameters() const {
  std::vector<ParameterPtr> collected;
  CollectParameters(collected);
  return collected;
}

std::vector<ParameterPtr> Cell::TrainableParams() const {
  std::vector<ParameterPtr> trainable = Parameters();
  trainable.erase(std::remove_if(trainable.begin(), trainable.end(),
                                 [](const ParameterPtr& parameter) { return !parameter->requires_grad(); }),
                  trainable.end());
  return trainable;
}

void Cell::CollectParameters(std::vector<ParameterPtr>& collected) const {
  for (const NamedParameter& named : parameters_) {
    if (named.parameter == nullptr) continue;
    if (std::find(collected.begin(), collected.end(), named.parameter) == collected.end()) {
      collected.push_back(named.parameter);
    }
  }
  for (const Child& child : children_) child.cell->CollectParameters(collected);
}

}  // namespace pipeloom
