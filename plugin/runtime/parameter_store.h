#ifndef PLUGIN_RUNTIME_PARAMETER_STORE_H_
#define PLUGIN_RUNTIME_PARAMETER_STORE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/buffer.h"

namespace pipeloom {

// The parameters that one rank holds, by name. Their addresses never change, so that programs can be bound to them.
class ParameterStore {
 public:
  // The parameter, made and zeroed where it is new. InvalidArgument where it has another type.
  absl::StatusOr<Tensor*> FindOrAdd(const std::string& name, const TensorType& type) {
    const auto entry = parameters_.find(name);
    if (entry == parameters_.end()) return &parameters_.emplace(name, Tensor(type)).first->second;
    if (entry->second.type() == type) return &entry->second;
    return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " is ", entry->second.type().ToString(),
                                                   " in one program and ", type.ToString(), " in another"));
  }
  void Erase(const std::string& name) { parameters_.erase(name); }
  Tensor* Find(const std::string& name) {
    const auto entry = parameters_.find(name);
    return entry == parameters_.end() ? nullptr : &entry->second;
  }

 private:
  std::map<std::string, Tensor> parameters_;
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_PARAMETER_STORE_H_
