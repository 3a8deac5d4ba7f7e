#include "tests/testlib/small_session.h"

#include <utility>

#include "kernels/base/elements.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/parse.h"

namespace pipeloom {
namespace {

std::vector<float> ToFloats(const Tensor& tensor) {
  return std::vector<float>(tensor.data<float>(), tensor.data<float>() + tensor.type().num_elements());
}

}  // namespace

absl::StatusOr<SmallSession> SmallSession::Start(const std::string& text, SessionOptions options) {
  SmallSession small;
  ASSIGN_OR_RETURN(Module module, Parse(text));
  const int stages = module.config.stages;
  ASSIGN_OR_RETURN(CompiledProgram program, Compile(std::move(module), {}));
  small.program_ = std::make_unique<CompiledProgram>(std::move(program));
  ASSIGN_OR_RETURN(small.session_, Session::Create(stages, options));
  ASSIGN_OR_RETURN(small.number_, small.session_->Load(*small.program_));
  return small;
}

absl::StatusOr<float> SmallSession::Step(const std::vector<std::vector<double>>& inputs) {
  std::vector<Tensor> tensors;
  std::vector<TensorView> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    tensors.emplace_back(program_->inputs[i]);
    PIPELOOM_CHECK(static_cast<int64_t>(inputs[i].size()) == program_->inputs[i].num_elements(), "input ", i, " has ",
                   inputs[i].size(), " elements");
    StoreElements(inputs[i], tensors[i].view());
  }
  for (Tensor& tensor : tensors) views.push_back(tensor.view());
  std::vector<Tensor> results;
  std::vector<TensorView> result_views;
  for (const TensorType& type : program_->outputs) results.emplace_back(type);
  for (Tensor& result : results) result_views.push_back(result.view());
  RETURN_IF_ERROR(session_->Run(number_, views, result_views));
  for (const Tensor& result : results) {
    if (result.type().rank() == 0) return result.data<float>()[0];
  }
  return absl::InternalError("the program has no scalar output");
}

absl::Status SmallSession::Write(const std::string& parameter, const std::vector<float>& values) {
  ASSIGN_OR_RETURN(Tensor tensor, session_->ReadParameter(parameter));
  PIPELOOM_CHECK(static_cast<int64_t>(values.size()) == tensor.type().num_elements(), parameter, " given ",
                 values.size(), " elements");
  for (size_t i = 0; i < values.size(); ++i) tensor.data<float>()[i] = values[i];
  return session_->WriteParameter(parameter, tensor.view());
}

std::vector<float> SmallSession::Read(const std::string& parameter) const { return ReadCopies(parameter)[0]; }

std::vector<std::vector<float>> SmallSession::ReadCopies(const std::string& parameter) const {
  const absl::StatusOr<std::vector<Tensor>> copies = session_->ReadCopies(parameter);
  PIPELOOM_CHECK(copies.ok(), copies.status().message());
  std::vector<std::vector<float>> values;
  for (const Tensor& copy : *copies) values.push_back(ToFloats(copy));
  return values;
}

}  // namespace pipeloom
