#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mindspore/include/custom_backend_api.h"
#include "plugin/mindspore/anf.h"
#include "plugin/mindspore/options.h"
#include "plugin/mindspore/step_program.h"

namespace pipeloom::ms {
namespace {

namespace backend = ::mindspore::backend;

// What `ms.jit(backend="pipeloom")` hands whole compiled graphs to.
class PipeloomBackend : public backend::BackendBase {
 public:
  backend::BackendGraphId Build(const host::FuncGraphPtr& graph, const backend::BackendJitConfig&) override {
    try {
      programs_.push_back(std::make_unique<StepProgram>(graph, CurrentOptions()));
    } catch (const Refused& refused) {
      MS_EXCEPTION(host::RuntimeError) << refused.what();
    }
    return static_cast<backend::BackendGraphId>(programs_.size() - 1);
  }

  backend::RunningStatus Run(backend::BackendGraphId id, const host::VectorRef& inputs,
                             host::VectorRef* outputs) override {
    try {
      outputs->push_back(programs_.at(id)->Run(inputs));
    } catch (const Refused& refused) {
      MS_EXCEPTION(host::RuntimeError) << refused.what();
    }
    return backend::kRunningSuccess;
  }

  void ClearGraph(backend::BackendGraphId id) override { programs_.at(id).reset(); }

  void ConvertIR(const host::FuncGraphPtr&, const std::map<std::string, host::tensor::TensorPtr>&,
                 backend::IRFormat) override {
    MS_EXCEPTION(host::NotSupportError) << "the pipeloom backend does not convert graphs";
  }

  std::string ExportIR(const host::FuncGraphPtr&, const std::string&, bool, backend::IRFormat) override {
    MS_EXCEPTION(host::NotSupportError) << "the pipeloom backend does not export graphs";
  }

 private:
  std::vector<std::unique_ptr<StepProgram>> programs_;
};

const backend::BackendRegister registered("pipeloom", [] { return std::make_shared<PipeloomBackend>(); });

}  // namespace
}  // namespace pipeloom::ms
