#ifndef PLUGIN_CELLS_PARAMETER_H_
#define PLUGIN_CELLS_PARAMETER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "kernels/base/buffer.h"
#include "plugin/cells/initializer.h"

namespace pipeloom {

class BuildContext;

// An f32 weight of a cell. One object held by two cells is one weight. Its name comes from where it stands in a
// network, so that it is the same however the cells were made.
class Parameter {
 public:
  Parameter(Shape shape, Initializer initializer) : shape_(std::move(shape)), initializer_(std::move(initializer)) {}

  const Shape& shape() const { return shape_; }
  // A parameter that requires no gradient keeps its value; an optimizer that has it leaves it out.
  bool requires_grad() const { return requires_grad_; }
  void SetRequiresGrad(bool requires_grad) { requires_grad_ = requires_grad; }
  // Initial values are a function of this seed, the parameter's name and the element.
  void SetSeed(uint64_t seed) { seed_ = seed; }
  Tensor InitialValue(const std::string& name) const {
    Tensor value(TensorType{DType::kFloat32, shape_});
    initializer_(shape_, CounterRandom(seed_, name),
                 absl::MakeSpan(value.data<float>(), static_cast<size_t>(value.type().num_elements())));
    return value;
  }

 private:
  friend class BuildContext;
  friend class Var;

  Shape shape_;
  Initializer initializer_;
  bool requires_grad_ = true;
  uint64_t seed_ = 0;
  BuildContext* context_ = nullptr;  // while a graph is built: where its value stands
};

using ParameterPtr = std::shared_ptr<Parameter>;

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_PARAMETER_H_
