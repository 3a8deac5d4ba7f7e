#include "plugin/c_api/types.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "plugin/c_api/guard.h"

namespace pipeloom::c_api {
namespace {

static_assert(PIPELOOM_F32 == static_cast<int>(DType::kFloat32) && PIPELOOM_I32 == static_cast<int>(DType::kInt32) &&
                  PIPELOOM_I64 == static_cast<int>(DType::kInt64) && PIPELOOM_BOOL == static_cast<int>(DType::kBool) &&
                  std::size(kDTypes) == 4,
              "the header has every element type");

// As the op table and the verifier have it; shape rules count elements, and the number must not overflow before these
// refuse it.
bool HasElements(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || extent > (int64_t{1} << 60) / elements) return false;
    elements *= std::max<int64_t>(extent, 1);
  }
  return true;
}

// Messages do not say what the type is of, so that they cost nothing where there is none.
absl::Status ReadTypeInto(const pipeloom_type& type, TensorType* read) {
  if (type.dtype < 0 || type.dtype >= static_cast<int>(std::size(kDTypes))) {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype ", type.dtype, " is no PIPELOOM_F32, PIPELOOM_I32, PIPELOOM_I64 or PIPELOOM_BOOL"));
  }
  constexpr int kMostAxes = 64;  // more is a number that was never set
  if (type.rank < 0 || type.rank > kMostAxes) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", type.rank, "; give 0 to ", kMostAxes));
  }
  if (type.rank > 0 && type.extents == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", type.rank, " without extents"));
  }
  read->dtype = static_cast<DType>(type.dtype);
  read->shape.assign(type.extents, type.extents + type.rank);
  if (HasElements(read->shape)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("shape ", ShapeToString(read->shape), "; extents are 0 or more, with a product of at most 2^60"));
}

absl::StatusOr<Attribute> ReadAttribute(const pipeloom_attribute& attribute, absl::string_view what) {
  switch (attribute.kind) {
    case PIPELOOM_ATTRIBUTE_BOOL:
      return Attribute(attribute.value.boolean != 0);
    case PIPELOOM_ATTRIBUTE_INT:
      return Attribute(attribute.value.integer);
    case PIPELOOM_ATTRIBUTE_DOUBLE:
      return Attribute(attribute.value.real);
    case PIPELOOM_ATTRIBUTE_STRING: {
      ASSIGN_OR_RETURN(const absl::string_view text, ReadString(attribute.value.string, what));
      return Attribute(std::string(text));
    }
    case PIPELOOM_ATTRIBUTE_INTS: {
      const auto& [elements, count] = attribute.value.integers;
      RETURN_IF_ERROR(ArrayNotNull(elements, count, what));
      return Attribute(std::vector<int64_t>(elements, elements + count));
    }
    default:
      return absl::InvalidArgumentError(absl::StrCat(what, " has kind ", attribute.kind,
                                                     ", which is no PIPELOOM_ATTRIBUTE_BOOL, INT, DOUBLE, STRING ",
                                                     "or INTS"));
  }
}

struct Borrower {
  pipeloom_attribute operator()(bool value) const {
    pipeloom_attribute attribute = {};
    attribute.kind = PIPELOOM_ATTRIBUTE_BOOL;
    attribute.value.boolean = value ? 1 : 0;
    return attribute;
  }
  pipeloom_attribute operator()(int64_t value) const {
    pipeloom_attribute attribute = {};
    attribute.kind = PIPELOOM_ATTRIBUTE_INT;
    attribute.value.integer = value;
    return attribute;
  }
  pipeloom_attribute operator()(double value) const {
    pipeloom_attribute attribute = {};
    attribute.kind = PIPELOOM_ATTRIBUTE_DOUBLE;
    attribute.value.real = value;
    return attribute;
  }
  pipeloom_attribute operator()(const std::string& value) const {
    pipeloom_attribute attribute = {};
    attribute.kind = PIPELOOM_ATTRIBUTE_STRING;
    attribute.value.string = value.c_str();
    return attribute;
  }
  pipeloom_attribute operator()(const std::vector<int64_t>& value) const {
    pipeloom_attribute attribute = {};
    attribute.kind = PIPELOOM_ATTRIBUTE_INTS;
    attribute.value.integers = {value.data(), value.size()};
    return attribute;
  }
};

}  // namespace

absl::StatusOr<absl::string_view> ReadString(const char* text, absl::string_view what) {
  RETURN_IF_ERROR(NotNull(text, what));
  return absl::string_view(text);
}

absl::StatusOr<TensorType> ReadType(const pipeloom_type* type, absl::string_view what) {
  RETURN_IF_ERROR(NotNull(type, what));
  TensorType read;
  const absl::Status status = ReadTypeInto(*type, &read);
  if (!status.ok()) return Annotate(status, what);
  return read;
}

absl::Status ReadTensor(const pipeloom_tensor& tensor, TensorView* view) {
  RETURN_IF_ERROR(ReadTypeInto(tensor.type, &view->type));
  view->data = tensor.data;
  const auto element = static_cast<uintptr_t>(Info(view->type.dtype).bytes);
  if (reinterpret_cast<uintptr_t>(tensor.data) % element == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the data of a tensor of ", Info(view->type.dtype).name,
                                                 " begins at no multiple of ", element, " bytes"));
}

absl::StatusOr<AttributeMap> ReadAttributes(const pipeloom_attribute* attributes, size_t count) {
  RETURN_IF_ERROR(ArrayNotNull(attributes, count, "the array of attributes"));
  AttributeMap map;
  for (size_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const absl::string_view name, ReadString(attributes[i].name, "the name of an attribute"));
    ASSIGN_OR_RETURN(Attribute value, ReadAttribute(attributes[i], absl::StrCat("attribute ", name)));
    if (map.emplace(name, std::move(value)).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("attribute ", name, " is given twice"));
  }
  return map;
}

pipeloom_type Borrow(const TensorType& type) { return {static_cast<int>(type.dtype), type.rank(), type.shape.data()}; }

std::vector<pipeloom_type> Borrow(const std::vector<TensorType>& types) {
  std::vector<pipeloom_type> borrowed;
  borrowed.reserve(types.size());
  for (const TensorType& type : types) borrowed.push_back(Borrow(type));
  return borrowed;
}

std::vector<pipeloom_attribute> Borrow(const AttributeMap& attributes) {
  std::vector<pipeloom_attribute> borrowed;
  for (const auto& [name, value] : attributes) {
    borrowed.push_back(std::visit(Borrower(), value));
    borrowed.back().name = name.c_str();
  }
  return borrowed;
}

}  // namespace pipeloom::c_api
