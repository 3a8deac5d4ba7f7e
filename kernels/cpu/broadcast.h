#ifndef KERNELS_CPU_BROADCAST_H_
#define KERNELS_CPU_BROADCAST_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/base/status_macros.h"
#include "kernels/registry/kernel.h"

namespace pipeloom {

// A dimension of a result with what a step along it moves in each of N operands, in elements: 0 where the operand is
// broadcast.
template <size_t N>
struct BroadcastDim {
  int64_t extent;
  std::array<int64_t, N> steps;
};

// numpy's broadcasting of the first N inputs of `spec` to its result: dimensions from outermost to innermost, at least
// one; those that all operands walk as one are one.
template <size_t N>
std::vector<BroadcastDim<N>> BroadcastDims(const KernelSpec& spec) {
  const Shape& out = spec.outputs[0].shape;
  std::vector<BroadcastDim<N>> dims;  // innermost first
  std::array<int64_t, N> strides;
  strides.fill(1);
  for (size_t back = 1; back <= out.size(); ++back) {
    BroadcastDim<N> dim{out[out.size() - back], {}};
    bool one_with_last = !dims.empty();
    for (size_t k = 0; k < N; ++k) {
      const Shape& shape = spec.inputs[k].shape;
      const int64_t extent = back <= shape.size() ? shape[shape.size() - back] : 1;
      PIPELOOM_CHECK(extent == dim.extent || extent == 1, "an operand of shape ", ShapeToString(shape), " for ",
                     ShapeToString(out));
      dim.steps[k] = extent == 1 ? 0 : strides[k];
      strides[k] *= extent;
      one_with_last = one_with_last && dim.steps[k] == dims.back().steps[k] * dims.back().extent;
    }
    if (dim.extent == 1) continue;
    if (one_with_last) {
      dims.back().extent *= dim.extent;
    } else {
      dims.push_back(dim);
    }
  }
  if (dims.empty()) dims.push_back({1, {}});
  std::reverse(dims.begin(), dims.end());
  return dims;
}

// Function()(a, b, ...) for the elements of broadcast operands of types In.
template <typename Function, typename Out, typename... In>
class BroadcastKernel : public Kernel {
 public:
  explicit BroadcastKernel(const KernelSpec& spec)
      : dims_(BroadcastDims<sizeof...(In)>(spec)), count_(spec.outputs[0].num_elements()) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    if (count_ == 0) return absl::OkStatus();
    Out* out = static_cast<Out*>(operands[sizeof...(In)]);
    RunDims(0, Inputs(operands, Places()), &out);
    return absl::OkStatus();
  }

 private:
  using Pointers = std::tuple<const In*...>;
  using Dim = BroadcastDim<sizeof...(In)>;
  using Places = std::index_sequence_for<In...>;

  template <size_t... K>
  static Pointers Inputs(absl::Span<void* const> operands, std::index_sequence<K...>) {
    return Pointers(static_cast<const In*>(operands[K])...);
  }
  template <size_t... K>
  static Pointers Step(const Pointers& at, const Dim& dim, int64_t i, std::index_sequence<K...>) {
    return Pointers(std::get<K>(at) + i * dim.steps[K]...);
  }
  template <size_t... K>
  static void Row(const Pointers& at, const Dim& dim, Out* out, std::index_sequence<K...>) {
    if (((dim.steps[K] == 1) && ...)) {
      for (int64_t i = 0; i < dim.extent; ++i) out[i] = Function()(std::get<K>(at)[i]...);
    } else {
      for (int64_t i = 0; i < dim.extent; ++i) out[i] = Function()(std::get<K>(at)[i * dim.steps[K]]...);
    }
  }

  void RunDims(size_t depth, const Pointers& at, Out** out) const {
    const Dim& dim = dims_[depth];
    if (depth + 1 == dims_.size()) {
      Row(at, dim, *out, Places());
      *out += dim.extent;
      return;
    }
    for (int64_t i = 0; i < dim.extent; ++i) RunDims(depth + 1, Step(at, dim, i, Places()), out);
  }

  std::vector<Dim> dims_;
  int64_t count_;
};

template <typename Function, typename Out, typename... In>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBroadcastKernel(const KernelSpec& spec) {
  return std::make_unique<BroadcastKernel<Function, Out, In...>>(spec);
}

}  // namespace pipeloom

#endif  // KERNELS_CPU_BROADCAST_H_
