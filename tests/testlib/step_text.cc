#include "tests/testlib/step_text.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipeloom {
namespace {

std::string TypeOfRows(absl::string_view dtype, const std::vector<int>& dims) {
  return absl::StrCat(dtype, "[{rows}", dims.empty() ? "" : ",", absl::StrJoin(dims, ","), "]");
}

}  // namespace

StepText::Var StepText::Input(const std::string& name, absl::string_view dtype, std::vector<int> dims) {
  absl::StrAppend(&inputs_, inputs_.empty() ? "" : ", ", "%", name, ": ", TypeOfRows(dtype, dims), " {batch_axis=0}");
  return {name, std::move(dims)};
}

std::string StepText::Parameter(const std::string& parameter, const std::vector<int>& dims, bool trainable) {
  const std::string name = absl::StrCat("p", values_++);
  absl::StrAppend(&leaves_, "  %", name, " = param \"", parameter, "\"", trainable ? "" : " {trainable=false}",
                  " : f32[", absl::StrJoin(dims, ","), "]\n");
  return name;
}

std::string StepText::Constant(absl::string_view value, absl::string_view type) {
  const std::string name = absl::StrCat("k", values_++);
  absl::StrAppend(&leaves_, "  %", name, " = constant ", value, " : ", type, "\n");
  return name;
}

StepText::Var StepText::Emit(absl::string_view op, const std::vector<std::string>& operands, std::vector<int> dims,
                             absl::string_view attributes) {
  return EmitOf("f32", op, operands, std::move(dims), attributes);
}

StepText::Var StepText::EmitOf(absl::string_view dtype, absl::string_view op, const std::vector<std::string>& operands,
                               std::vector<int> dims, absl::string_view attributes) {
  const std::string name = EmitTyped(op, operands, TypeOfRows(dtype, dims), attributes);
  return {name, std::move(dims)};
}

std::string StepText::EmitTyped(absl::string_view op, const std::vector<std::string>& operands, absl::string_view type,
                                absl::string_view attributes) {
  const std::string name = absl::StrCat("v", values_++);
  absl::StrAppend(&nodes_, "  %", name, " = ", op, "(%", absl::StrJoin(operands, ", %"), ")",
                  attributes.empty() ? "" : absl::StrCat(" {", attributes, "}"), " : ", type, "  // ", cell,
                  cell.empty() ? "" : ", ", "forward\n");
  return name;
}

std::string StepText::Finish(absl::string_view outputs, absl::string_view update) const {
  return absl::StrCat("graph @step(", inputs_, ") -> (", outputs, ") {\n", leaves_, nodes_, "} update ", update, "\n");
}

}  // namespace pipeloom
