#include "tests/testlib/reference_ops.h"

#include <utility>

#include "kernels/base/status_macros.h"
#include "tests/testlib/reference_family.h"

namespace pipeloom {
namespace reference {

RefTensor Zeros(const TensorType& type) { return {type, std::vector<double>(type.num_elements(), 0.0)}; }

int64_t Offset(const Shape& shape, const Index& index) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) offset = offset * shape[axis] + index[axis];
  return offset;
}

void ForEach(const Shape& shape, const std::function<void(const Index&)>& visit) {
  Index index(shape.size(), 0);
  for (int64_t left = NumElements(shape); left > 0; --left) {
    visit(index);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

double BroadcastAt(const RefTensor& tensor, const Index& index) {
  const Shape& shape = tensor.type.shape;
  Index own(index.end() - static_cast<std::ptrdiff_t>(shape.size()), index.end());
  for (size_t axis = 0; axis < shape.size(); ++axis) own[axis] = shape[axis] == 1 ? 0 : own[axis];
  return tensor.values[Offset(shape, own)];
}

Tensors Fill(const TensorType& type, const std::function<double(const Index&)>& element) {
  RefTensor result = Zeros(type);
  ForEach(type.shape, [&](const Index& index) { result.values[Offset(type.shape, index)] = element(index); });
  return {std::move(result)};
}

}  // namespace reference

namespace {

const reference::References& AllReferences() {
  static const auto& references = *[] {
    auto* all = new reference::References();
    for (auto family : {reference::MatmulReferences, reference::ElementwiseReferences, reference::MathReferences,
                        reference::LossReferences, reference::ReductionReferences, reference::NormalizationReferences,
                        reference::MovementReferences, reference::GatherReferences, reference::LogicalReferences,
                        reference::DropoutReferences, reference::UpdateReferences}) {
      all->merge(family());
    }
    return all;
  }();
  return references;
}

}  // namespace

bool HasReference(absl::string_view op) { return AllReferences().count(op) != 0; }

std::vector<RefTensor> RunReference(absl::string_view op, const std::vector<RefTensor>& inputs,
                                    const AttributeMap& attributes, const std::vector<TensorType>& results) {
  const auto reference = AllReferences().find(op);
  PIPELOOM_CHECK(reference != AllReferences().end(), "op ", op, " has no reference");
  return reference->second(inputs, attributes, results);
}

}  // namespace pipeloom
