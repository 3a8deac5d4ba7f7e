#include "kernels/cpu/onednn.h"

#include "absl/strings/str_cat.h"
#include "oneapi/dnnl/dnnl_debug.h"

namespace pipeloom {

absl::Status StatusFromOneDnn(dnnl_status_t code, absl::string_view what) {
  if (code == dnnl_success) return absl::OkStatus();
  const std::string message = absl::StrCat("oneDNN refuses ", what, ": ", dnnl_status2str(code));
  switch (code) {
    case dnnl_invalid_arguments:
      return absl::InvalidArgumentError(message);
    case dnnl_unimplemented:
    case dnnl_last_impl_reached:
      return absl::UnimplementedError(message);
    case dnnl_out_of_memory:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

dnnl::memory::desc DenseDesc(const dnnl::memory::dims& dims, bool transposed) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  if (transposed) strides = {1, dims[0]};
  return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, strides);
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

OneDnnCall::OneDnnCall(const dnnl::engine& engine, const dnnl::primitive& primitive,
                       const dnnl::primitive_desc_base& desc, const std::vector<Argument>& arguments)
    : primitive_(primitive),
      stream_(engine),
      scratch_bytes_(desc.scratchpad_desc().get_size()),
      implementation_(desc.impl_info_str()) {
  for (const Argument& argument : arguments) {
    memories_.emplace_back(argument.desc, engine, nullptr);
    operands_.push_back(argument.operand);
    exec_args_.push_back({argument.kind, memories_.back().get()});
  }
  if (scratch_bytes_ > 0) {
    memories_.emplace_back(desc.scratchpad_desc(), engine, nullptr);
    exec_args_.push_back({DNNL_ARG_SCRATCHPAD, memories_.back().get()});
  }
}

absl::Status OneDnnCall::Run(absl::Span<void* const> operands, void* scratch) {
  for (size_t i = 0; i < exec_args_.size(); ++i) {
    void* const address = i < operands_.size() ? operands[operands_[i]] : scratch;
    const dnnl_status_t code = dnnl_memory_set_data_handle(exec_args_[i].memory, address);
    if (code != dnnl_success) return StatusFromOneDnn(code, "an operand's address");
  }
  const dnnl_status_t code =
      dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(exec_args_.size()), exec_args_.data());
  return code == dnnl_success ? absl::OkStatus() : StatusFromOneDnn(code, implementation_);
}

}  // namespace pipeloom
