#include "kernels/cpu/eltwise.h"

#include "absl/strings/str_cat.h"

namespace pipeloom {

const EltwiseActivation* FindEltwiseActivation(absl::string_view name) {
  for (const EltwiseActivation& activation : kEltwiseActivations) {
    if (activation.name == name) return &activation;
  }
  return nullptr;
}

absl::StatusOr<OneDnnCall> MakeEltwiseForward(const EltwiseActivation& activation, int64_t count, int threads, int src,
                                              int dst) {
  const std::string what = absl::StrCat(activation.name, " of ", count, " elements");
  return MakeWithOneDnn(what, threads, [&](const dnnl::engine& engine) {
    const dnnl::memory::desc flat = DenseDesc({count});
    const dnnl::eltwise_forward::primitive_desc desc(engine, dnnl::prop_kind::forward_inference, activation.algorithm,
                                                     flat, flat, 0.f, 0.f, UserScratchpad());
    return OneDnnCall(engine, dnnl::eltwise_forward(desc), desc,
                      {{DNNL_ARG_SRC, flat, src}, {DNNL_ARG_DST, flat, dst}});
  });
}

absl::StatusOr<OneDnnCall> MakeEltwiseBackward(const EltwiseActivation& activation, int64_t count, int threads,
                                               int diff_dst, int src, int diff_src) {
  const std::string what = absl::StrCat("the gradient of ", activation.name, " of ", count, " elements");
  return MakeWithOneDnn(what, threads, [&](const dnnl::engine& engine) {
    const dnnl::memory::desc flat = DenseDesc({count});
    const dnnl::eltwise_forward::primitive_desc forward(engine, dnnl::prop_kind::forward_training, activation.algorithm,
                                                        flat, flat, 0.f, 0.f, UserScratchpad());
    const dnnl::eltwise_backward::primitive_desc desc(engine, activation.algorithm, flat, flat, flat, 0.f, 0.f, forward,
                                                      UserScratchpad());
    return OneDnnCall(
        engine, dnnl::eltwise_backward(desc), desc,
        {{DNNL_ARG_DIFF_DST, flat, diff_dst}, {DNNL_ARG_SRC, flat, src}, {DNNL_ARG_DIFF_SRC, flat, diff_src}});
  });
}

}  // namespace pipeloom
