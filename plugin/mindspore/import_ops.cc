#include "plugin/mindspore/import_ops.h"

#include <algorithm>

#include "plugin/mindspore/op_families.h"

namespace pipeloom::ms {
namespace {

const Rewrites& AllRewrites() {
  static const Rewrites& all = *[] {
    auto* rewrites = new Rewrites();
    for (const auto add : {AddElementwiseOps, AddMovementOps, AddNetworkOps, AddUpdateOps}) add(rewrites);
    return rewrites;
  }();
  return all;
}

}  // namespace

const Item& OpImport::operand(size_t i) const {
  if (i >= operands_.size()) {
    throw Refused(Describe(node_) + " has " + std::to_string(operands_.size()) + " operands; operand " +
                  std::to_string(i) + " is needed");
  }
  return operands_[i];
}

Tensor OpImport::TensorAt(size_t i) const { return AsTensor(operand(i)); }

Tensor OpImport::AsTensor(const Item& item) const {
  if (item.tensor) return *item.tensor;
  if (item.constant == nullptr) throw Refused(Describe(node_) + " reads a tuple where a tensor is needed");
  const auto tensor = item.constant->cast<host::tensor::TensorPtr>();
  if (tensor == nullptr) return Scalar(NumberOf(item.constant));
  const Type type = TypeOf(tensor);
  std::vector<double> elements = ElementsOf(tensor);
  const bool equal = std::all_of(elements.begin(), elements.end(), [&](double e) { return e == elements[0]; });
  if (equal && !elements.empty()) elements.resize(1);
  return writer_.AddConstant(type, elements);
}

host::ValuePtr OpImport::ConstantAt(size_t i) const {
  const Item& item = operand(i);
  if (item.tensor || item.is_tuple) {
    throw Refused(Describe(node_) + ": operand " + std::to_string(i) +
                  " is known at run time only; it must be constant");
  }
  return item.constant;
}

Tensor OpImport::Reshape(const Tensor& tensor, const std::vector<int64_t>& shape) const {
  if (tensor.type.shape == shape) return tensor;
  return Emit("reshape", {tensor}, {tensor.type.dtype, shape}, {{"shape", shape}});
}

int64_t AxisAt(const OpImport& import, size_t operand, const Type& type) {
  const int64_t axis = IntOf(import.ConstantAt(operand));
  return axis < 0 ? axis + static_cast<int64_t>(type.shape.size()) : axis;
}

Item ImportOp(const OpImport& import) {
  const std::string op = OpName(import.node());
  const auto rewrite = AllRewrites().find(op);
  if (rewrite == AllRewrites().end()) {
    throw Refused(Describe(import.node()) + ": Pipeloom has no kernel for this op yet");
  }
  return rewrite->second(import);
}

}  // namespace pipeloom::ms
