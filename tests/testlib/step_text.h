#ifndef TESTS_TESTLIB_STEP_TEXT_H_
#define TESTS_TESTLIB_STEP_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pipeloom {

// Writes a step graph in the text form, line by line. Extents are those after the rows of a micro-batch, for which
// `{rows}` stands.
class StepText {
 public:
  struct Var {
    std::string name;  // without the '%'
    std::vector<int> dims;
  };

  Var Input(const std::string& name, absl::string_view dtype, std::vector<int> dims);
  // f32[dims], without rows. The name of its value.
  std::string Parameter(const std::string& parameter, const std::vector<int>& dims, bool trainable);
  // `type` in full, such as f32[]. The name of its value.
  std::string Constant(absl::string_view value, absl::string_view type);

  // A forward node of `cell`, with a result f32[{rows},dims], or of another dtype; operands are names.
  Var Emit(absl::string_view op, const std::vector<std::string>& operands, std::vector<int> dims,
           absl::string_view attributes = "");
  Var EmitOf(absl::string_view dtype, absl::string_view op, const std::vector<std::string>& operands,
             std::vector<int> dims, absl::string_view attributes = "");
  // The same with the result's type in full. Its name.
  std::string EmitTyped(absl::string_view op, const std::vector<std::string>& operands, absl::string_view type,
                        absl::string_view attributes = "");

  // The whole graph; `outputs` as they stand between the brackets, `update` as after the word.
  std::string Finish(absl::string_view outputs, absl::string_view update) const;

  std::string cell;  // of the nodes that follow; "" for none

 private:
  std::string inputs_;
  std::string leaves_;
  std::string nodes_;
  int values_ = 0;
};

}  // namespace pipeloom

#endif  // TESTS_TESTLIB_STEP_TEXT_H_
