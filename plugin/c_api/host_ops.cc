#include "plugin/c_api/host_ops.h"

#include <memory>
#include <string>
#include <vector>

#include "plugin/c_api/guard.h"
#include "plugin/c_api/types.h"

namespace pipeloom::c_api {
namespace {

class HostKernel : public Kernel {
 public:
  HostKernel(const pipeloom_host_ops& ops, void* kernel, size_t inputs) : ops_(ops), kernel_(kernel), inputs_(inputs) {}
  ~HostKernel() override { ops_.destroy(kernel_); }
  HostKernel(const HostKernel&) = delete;
  HostKernel& operator=(const HostKernel&) = delete;

  absl::Status Run(absl::Span<void* const> operands, void* /*scratch*/) override {
    ForgetError();
    return FromCallback(ops_.run(kernel_, operands.data(), operands.data() + inputs_), "the host's kernel");
  }
  std::string implementation() const override { return "host"; }

 private:
  const pipeloom_host_ops ops_;
  void* const kernel_;
  const size_t inputs_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeHostKernel(const pipeloom_host_ops& ops, const KernelSpec& spec) {
  const std::vector<pipeloom_attribute> attributes = Borrow(spec.attributes);
  const std::vector<pipeloom_type> inputs = Borrow(spec.inputs);
  const std::vector<pipeloom_type> outputs = Borrow(spec.outputs);
  const pipeloom_host_op op = {spec.op.c_str(), attributes.data(), attributes.size(), inputs.data(),
                               inputs.size(),   outputs.data(),    outputs.size(),    spec.threads};
  ForgetError();
  void* kernel = nullptr;
  const absl::Status made = FromCallback(ops.make(ops.user, &op, &kernel), "the host has no kernel");
  if (!made.ok()) return made;
  return std::make_unique<HostKernel>(ops, kernel, inputs.size());
}

}  // namespace

absl::StatusOr<KernelFactory> HostKernels(const pipeloom_host_ops& ops) {
  if (ops.make == nullptr && ops.run == nullptr && ops.destroy == nullptr) return KernelFactory();
  if (ops.make == nullptr || ops.run == nullptr || ops.destroy == nullptr) {
    return absl::InvalidArgumentError("host ops need all of make, run and destroy, or none");
  }
  return KernelFactory([ops](const KernelSpec& spec) { return MakeHostKernel(ops, spec); });
}

}  // namespace pipeloom::c_api
