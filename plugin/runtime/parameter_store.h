#ifndef PLUGIN_RUNTIME_PARAMETER_STORE_H_
#define PLUGIN_RUNTIME_PARAMETER_STORE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/base/buffer.h"

namespace pipeloom {

// The parameters that one rank holds, by name, in memory of its own or in the host's. A Parameter never moves, so that
// programs read its address from there and see where it is bound anew.
class ParameterStore {
 public:
  struct Parameter {
    TensorType type;
    char* data = nullptr;
    bool bound = false;  // `data` is the host's, and `own` is empty
    Tensor own;

    TensorView view() const { return {data, type}; }
  };

  // The parameter, made and zeroed where it is new. InvalidArgument where it has another type.
  absl::StatusOr<Parameter*> FindOrAdd(const std::string& name, const TensorType& type);
  void Erase(const std::string& name) { parameters_.erase(name); }
  Parameter* Find(const std::string& name);  // nullptr where there is none

  // The parameter, made where it is new, is in the host's memory from now on, with the value that it has there; without
  // data in its own again, with the value that it has. InvalidArgument where it has another type.
  absl::Status Bind(const std::string& name, const TensorView& memory);

 private:
  std::map<std::string, Parameter> parameters_;
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_PARAMETER_STORE_H_
