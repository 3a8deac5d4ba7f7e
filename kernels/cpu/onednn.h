#ifndef KERNELS_CPU_ONEDNN_H_
#define KERNELS_CPU_ONEDNN_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/cpu/cpu_kernels.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace pipeloom {

// The edge to oneDNN: its exceptions and codes end here and become a Status.

// InvalidArgument, Unimplemented, ResourceExhausted or Internal, naming `what` and oneDNN's own word for `code`.
absl::Status StatusFromOneDnn(dnnl_status_t code, absl::string_view what);

// make(engine), under `threads` compute threads, with what it throws turned into a Status about `what`.
template <typename Make>
auto MakeWithOneDnn(absl::string_view what, int threads, Make make)
    -> absl::StatusOr<decltype(make(std::declval<const dnnl::engine&>()))> {
  ScopedComputeThreads scope(threads);
  try {
    return make(dnnl::engine(dnnl::engine::kind::cpu, 0));
  } catch (const dnnl::error& error) {
    return StatusFromOneDnn(error.status, what);
  }
}

// Dense row-major fp32; `transposed` (rank 2 only) says that memory holds the transpose of `dims`.
dnnl::memory::desc DenseDesc(const dnnl::memory::dims& dims, bool transposed = false);

// Attributes with the scratchpad left to us, so that running allocates none.
dnnl::primitive_attr UserScratchpad();

// One primitive ready to run: memory objects and the argument array exist, Run only sets addresses.
class OneDnnCall {
 public:
  // `operand` is the place of the argument's address among Run's operands.
  struct Argument {
    int kind;  // DNNL_ARG_SRC, ...
    dnnl::memory::desc desc;
    int operand;
  };

  OneDnnCall() = default;
  // Throws dnnl::error: for use within MakeWithOneDnn.
  OneDnnCall(const dnnl::engine& engine, const dnnl::primitive& primitive, const dnnl::primitive_desc_base& desc,
             const std::vector<Argument>& arguments);

  absl::Status Run(absl::Span<void* const> operands, void* scratch);

  size_t scratch_bytes() const { return scratch_bytes_; }
  const std::string& implementation() const { return implementation_; }  // oneDNN's name: "brg:avx512_core"

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;  // of the arguments in order, the scratchpad last where there is one
  std::vector<int> operands_;
  std::vector<dnnl_exec_arg_t> exec_args_;
  size_t scratch_bytes_ = 0;
  std::string implementation_;
};

}  // namespace pipeloom

#endif  // KERNELS_CPU_ONEDNN_H_
