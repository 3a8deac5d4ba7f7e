#ifndef TESTS_TESTLIB_SMALL_SESSION_H_
#define TESTS_TESTLIB_SMALL_SESSION_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plugin/runtime/session.h"

namespace pipeloom {

// A session with one program that is given as text, for tests that set every number themselves.
class SmallSession {
 public:
  // `text` is a module in the text form.
  static absl::StatusOr<SmallSession> Start(const std::string& text, SessionOptions options = {});

  // A step; inputs in order, each with all its elements (numbers of the types that the program says). The first scalar
  // output.
  absl::StatusOr<float> Step(const std::vector<std::vector<double>>& inputs);
  absl::Status Write(const std::string& parameter, const std::vector<float>& values);
  std::vector<float> Read(const std::string& parameter) const;  // ends the process where there is none
  std::vector<std::vector<float>> ReadCopies(const std::string& parameter) const;

  const CompiledProgram& program() const { return *program_; }

 private:
  std::unique_ptr<CompiledProgram> program_;
  std::unique_ptr<Session> session_;
  int number_ = 0;
};

}  // namespace pipeloom

#endif  // TESTS_TESTLIB_SMALL_SESSION_H_
