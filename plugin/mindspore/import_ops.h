#ifndef PLUGIN_MINDSPORE_IMPORT_OPS_H_
#define PLUGIN_MINDSPORE_IMPORT_OPS_H_

#include <string>
#include <vector>

#include "plugin/mindspore/graph_writer.h"
#include "plugin/mindspore/item.h"

namespace pipeloom::ms {

// One node of MindSpore's that becomes nodes of Pipeloom.
class OpImport {
 public:
  OpImport(GraphWriter* writer, host::CNodePtr node, std::vector<Item> operands, Place place)
      : writer_(*writer), node_(std::move(node)), operands_(std::move(operands)), place_(std::move(place)) {}

  const host::CNodePtr& node() const { return node_; }
  size_t size() const { return operands_.size(); }
  const Item& operand(size_t i) const;
  // Operand i as a tensor; a constant becomes one of Pipeloom's.
  Tensor TensorAt(size_t i) const;
  // Operand i, which must be a constant.
  host::ValuePtr ConstantAt(size_t i) const;
  // The type of the node's one result.
  Type ResultType() const { return TypeOf(node_->abstract()); }

  Tensor Emit(const std::string& op, const std::vector<Tensor>& operands, const Type& result,
              const Attributes& attributes = {}) const {
    return writer_.Add(op, operands, result, attributes, place_);
  }
  std::vector<Tensor> EmitMany(const std::string& op, const std::vector<Tensor>& operands,
                               const std::vector<Type>& results, const Attributes& attributes = {}) const {
    return writer_.AddNode(op, operands, results, attributes, place_);
  }
  Tensor Scalar(double value, int dtype = PIPELOOM_F32) const { return writer_.AddConstant({dtype, {}}, {value}); }
  Tensor Constant(const Type& type, double value) const { return writer_.AddConstant(type, {value}); }
  Tensor Reshape(const Tensor& tensor, const std::vector<int64_t>& shape) const;
  Tensor AsTensor(const Item& item) const;

 private:
  GraphWriter& writer_;
  const host::CNodePtr node_;
  const std::vector<Item> operands_;
  const Place place_;
};

// Writes what the node does. Refused for an op without a translation.
Item ImportOp(const OpImport& import);

// Whether the op writes its first operand, a parameter.
bool WritesParameter(const std::string& op);

}  // namespace pipeloom::ms

#endif  // PLUGIN_MINDSPORE_IMPORT_OPS_H_
