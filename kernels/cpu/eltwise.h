#ifndef KERNELS_CPU_ELTWISE_H_
#define KERNELS_CPU_ELTWISE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cpu/onednn.h"

namespace pipeloom {

// The activations that oneDNN computes, under the names of matmul's epilogue steps. Alone and in an epilogue they go
// through the same algorithm, so both give the same bits (gelu_erf is oneDNN's polynomial, not std::erf). relu is not
// among them: oneDNN's turns NaN into 0 and would hide a diverged run from its loss.
struct EltwiseActivation {
  absl::string_view name;
  dnnl::algorithm algorithm;
};

inline constexpr EltwiseActivation kEltwiseActivations[] = {
    {"gelu_tanh", dnnl::algorithm::eltwise_gelu_tanh},
    {"gelu_erf", dnnl::algorithm::eltwise_gelu_erf},
    {"tanh", dnnl::algorithm::eltwise_tanh},
    {"sigmoid", dnnl::algorithm::eltwise_logistic},
};

// The row of `name`, or nullptr.
const EltwiseActivation* FindEltwiseActivation(absl::string_view name);

// operands[dst] = activation(operands[src]) over `count` > 0 elements; dst may be src.
absl::StatusOr<OneDnnCall> MakeEltwiseForward(const EltwiseActivation& activation, int64_t count, int threads, int src,
                                              int dst);

// operands[diff_src] = operands[diff_dst] * activation'(operands[src]); diff_src may be diff_dst.
absl::StatusOr<OneDnnCall> MakeEltwiseBackward(const EltwiseActivation& activation, int64_t count, int threads,
                                               int diff_dst, int src, int diff_src);

}  // namespace pipeloom

#endif  // KERNELS_CPU_ELTWISE_H_
