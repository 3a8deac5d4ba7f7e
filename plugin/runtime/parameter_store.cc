#include "plugin/runtime/parameter_store.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pipeloom {
namespace {

void UseOwnMemory(ParameterStore::Parameter& parameter) {
  parameter.own = Tensor(parameter.type);
  parameter.data = parameter.own.data<char>();
  parameter.bound = false;
}

}  // namespace

absl::StatusOr<ParameterStore::Parameter*> ParameterStore::FindOrAdd(const std::string& name, const TensorType& type) {
  const auto [entry, added] = parameters_.try_emplace(name);
  Parameter& parameter = entry->second;
  if (added) {
    parameter.type = type;
    UseOwnMemory(parameter);
  }
  if (parameter.type == type) return &parameter;
  return absl::InvalidArgumentError(
      absl::StrCat("parameter ", name, " is ", parameter.type.ToString(),
                   parameter.bound ? " where it is bound to memory of the host and " : " in one program and ",
                   type.ToString(), parameter.bound ? " in a program" : " in another"));
}

ParameterStore::Parameter* ParameterStore::Find(const std::string& name) {
  const auto entry = parameters_.find(name);
  return entry == parameters_.end() ? nullptr : &entry->second;
}

absl::Status ParameterStore::Bind(const std::string& name, const TensorView& memory) {
  const auto known = parameters_.find(name);
  if (known != parameters_.end() && known->second.type != memory.type) {
    return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " is ", known->second.type.ToString(),
                                                   "; the memory to bind it to is ", memory.type.ToString()));
  }
  if (memory.data != nullptr) {
    Parameter& parameter = parameters_[name];
    parameter.type = memory.type;
    parameter.data = static_cast<char*>(memory.data);
    parameter.bound = true;
    parameter.own = Tensor();
  } else if (known != parameters_.end() && known->second.bound) {
    const char* former = known->second.data;
    UseOwnMemory(known->second);
    std::memcpy(known->second.data, former, static_cast<size_t>(memory.type.bytes()));
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
