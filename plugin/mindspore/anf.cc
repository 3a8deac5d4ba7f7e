#include "plugin/mindspore/anf.h"

#include "abstract/abstract_value.h"
#include "abstract/dshape.h"
#include "ir/dtype.h"
#include "ir/scope.h"
#include "ir/value.h"

namespace pipeloom::ms {
namespace {

host::ValuePtr FindAttribute(const host::AnfNodePtr& node, const std::string& name) {
  const host::PrimitivePtr primitive = PrimitiveOf(node);
  return primitive == nullptr ? nullptr : primitive->GetAttr(name);
}

host::ValuePtr NeedAttribute(const host::AnfNodePtr& node, const std::string& name) {
  const host::ValuePtr value = FindAttribute(node, name);
  if (value == nullptr) throw Refused(Describe(node) + " has no attribute " + name);
  return value;
}

int DTypeOf(host::TypeId type) {
  switch (type) {
    case host::kNumberTypeFloat32:
      return PIPELOOM_F32;
    case host::kNumberTypeInt32:
      return PIPELOOM_I32;
    case host::kNumberTypeInt64:
      return PIPELOOM_I64;
    case host::kNumberTypeBool:
      return PIPELOOM_BOOL;
    default:
      throw Refused("Pipeloom has no element type " + host::TypeIdToString(type) +
                    "; it has Float32, Int32, Int64 and Bool");
  }
}

template <typename T>
void Append(const host::tensor::TensorPtr& tensor, std::vector<double>* elements) {
  const auto* data = static_cast<const T*>(tensor->data_c());
  for (size_t i = 0; i < tensor->DataSize(); ++i) elements->push_back(static_cast<double>(data[i]));
}

}  // namespace

host::PrimitivePtr PrimitiveOf(const host::AnfNodePtr& node) {
  const auto cnode = node->cast<host::CNodePtr>();
  return cnode == nullptr ? nullptr : host::GetValueNode<host::PrimitivePtr>(cnode->input(0));
}

std::string OpName(const host::AnfNodePtr& node) {
  const host::PrimitivePtr primitive = PrimitiveOf(node);
  return primitive == nullptr ? "" : primitive->name();
}

bool IsEffectOrder(const host::AnfNodePtr& node) {
  return OpName(node) == "UpdateState" || host::HasAbstractMonad(node);
}

int64_t IntAttribute(const host::AnfNodePtr& node, const std::string& name) { return IntOf(NeedAttribute(node, name)); }

bool BoolAttribute(const host::AnfNodePtr& node, const std::string& name, bool fallback) {
  const host::ValuePtr value = FindAttribute(node, name);
  return value == nullptr ? fallback : BoolOf(value);
}

double FloatAttribute(const host::AnfNodePtr& node, const std::string& name, double fallback) {
  const host::ValuePtr value = FindAttribute(node, name);
  return value == nullptr ? fallback : NumberOf(value);
}

std::string StringAttribute(const host::AnfNodePtr& node, const std::string& name) {
  const host::ValuePtr value = NeedAttribute(node, name);
  if (!value->isa<host::StringImm>()) throw Refused(Describe(node) + ": attribute " + name + " is no text");
  return host::GetValue<std::string>(value);
}

bool IsNone(const host::ValuePtr& value) { return value == nullptr || value->isa<host::None>(); }

int64_t IntOf(const host::ValuePtr& value) {
  if (value->isa<host::Int64Imm>()) return host::GetValue<int64_t>(value);
  if (value->isa<host::Int32Imm>()) return host::GetValue<int32_t>(value);
  if (value->isa<host::BoolImm>()) return host::GetValue<bool>(value) ? 1 : 0;
  throw Refused(value->ToString() + " is no whole number");
}

double NumberOf(const host::ValuePtr& value) {
  if (value->isa<host::FP32Imm>()) return host::GetValue<float>(value);
  if (value->isa<host::FP64Imm>()) return host::GetValue<double>(value);
  if (const auto tensor = value->cast<host::tensor::TensorPtr>(); tensor != nullptr && tensor->DataSize() == 1) {
    return ElementsOf(tensor)[0];
  }
  return static_cast<double>(IntOf(value));
}

bool BoolOf(const host::ValuePtr& value) {
  if (value->isa<host::BoolImm>()) return host::GetValue<bool>(value);
  throw Refused(value->ToString() + " is neither True nor False");
}

std::vector<int64_t> IntsOf(const host::ValuePtr& value) {
  const auto sequence = value->cast<host::ValueSequencePtr>();
  if (sequence == nullptr) return {IntOf(value)};
  std::vector<int64_t> ints;
  for (const host::ValuePtr& element : sequence->value()) ints.push_back(IntOf(element));
  return ints;
}

bool IsTensor(const host::AbstractBasePtr& abstract) {
  return abstract != nullptr && abstract->isa<host::abstract::AbstractTensor>();
}

Type TypeOf(const host::AbstractBasePtr& abstract) {
  const auto shape = abstract->GetShape()->cast<host::abstract::TensorShapePtr>();
  const auto tensor_type = abstract->GetType()->cast<host::TensorTypePtr>();
  if (!IsTensor(abstract) || shape == nullptr || tensor_type == nullptr) {
    throw Refused("a tensor is needed, not " + abstract->ToString());
  }
  Type type;
  type.dtype = DTypeOf(tensor_type->element()->type_id());
  for (const int64_t extent : shape->shape()) {
    if (extent < 0)
      throw Refused("shape " + shape->ToString() + " is known at run time only; give shapes that are fixed");
    type.shape.push_back(extent);
  }
  return type;
}

Type TypeOf(const host::tensor::TensorPtr& tensor) {
  Type type;
  type.dtype = DTypeOf(tensor->data_type());
  type.shape.assign(tensor->shape().begin(), tensor->shape().end());
  return type;
}

std::vector<double> ElementsOf(const host::tensor::TensorPtr& tensor) {
  std::vector<double> elements;
  elements.reserve(tensor->DataSize());
  switch (DTypeOf(tensor->data_type())) {
    case PIPELOOM_F32:
      Append<float>(tensor, &elements);
      break;
    case PIPELOOM_I32:
      Append<int32_t>(tensor, &elements);
      break;
    case PIPELOOM_I64:
      Append<int64_t>(tensor, &elements);
      break;
    default:
      Append<bool>(tensor, &elements);
      break;
  }
  return elements;
}

std::string Describe(const host::AnfNodePtr& node) {
  const std::string op = OpName(node);
  std::string text = op.empty() ? node->ToString() : op;
  if (node->scope() != nullptr) text += " (" + node->scope()->name() + ")";
  return text;
}

}  // namespace pipeloom::ms
