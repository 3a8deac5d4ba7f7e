#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/base/status_macros.h"
#include "kernels/cpu/families.h"
#include "kernels/cpu/simd.h"

namespace pipeloom {
namespace {

// A run of the input that falls into one element of the result, added in lanes, then to the element.
struct SumRunBody {
  PIPELOOM_LOOP Run(const float* x, float* out, int64_t n) {
    *out += SumInLanes(
        n,
        [=](Lanes & sums, int64_t i)
            __attribute__((always_inline)) { sums += *reinterpret_cast<const UnalignedLanes*>(x + i); },
        [=](int64_t i) __attribute__((always_inline)) { return x[i]; });
  }
};

// A run of the input that falls into a run of the result.
struct AddRunBody {
  PIPELOOM_LOOP Run(const float* x, float* out, int64_t n) {
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] += x[i];
  }
};

// The largest of two, NaN if one of them is.
inline __attribute__((always_inline)) float Larger(float a, float b) { return a >= b || a != a ? a : b; }

struct MaxRunBody {
  PIPELOOM_LOOP Run(const float* x, float* out, int64_t n) {
    float most = *out;
    for (int64_t i = 0; i < n; ++i) most = Larger(most, x[i]);
    *out = most;
  }
};

struct MaxOfRunsBody {
  PIPELOOM_LOOP Run(const float* x, float* out, int64_t n) {
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = Larger(out[i], x[i]);
  }
};

struct DivideBody {
  PIPELOOM_LOOP Run(float* out, float divisor, int64_t n) {
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] /= divisor;
  }
};

// A dimension of the input, outermost first; a step along it moves `out_step` elements in the result, 0 where it is
// reduced. Neighbours of one kind are one.
struct ReducedDim {
  int64_t extent;
  int64_t out_step;
};

std::vector<ReducedDim> ReducedDims(const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<bool> reduced(shape.size(), axes.empty());
  for (int64_t axis : axes) {
    const int64_t place = axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis;
    PIPELOOM_CHECK(place >= 0 && place < static_cast<int64_t>(shape.size()), "axis ", axis, " of ",
                   ShapeToString(shape));
    reduced[place] = true;
  }
  std::vector<ReducedDim> dims;  // innermost first
  int64_t out_stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (!dims.empty() && (dims.back().out_step == 0) == reduced[i]) {
      dims.back().extent *= shape[i];
    } else {
      dims.push_back({shape[i], reduced[i] ? 0 : out_stride});
    }
    if (!reduced[i]) out_stride *= shape[i];
  }
  if (dims.empty()) dims.push_back({1, 1});
  std::reverse(dims.begin(), dims.end());
  return dims;
}

using RunLoop = Loop<const float*, float*, int64_t>;

// What is done to `start` with each element, as loops over runs: into one element of the result, or into a run of it.
struct Reduction {
  float start;
  RunLoop into_one;
  RunLoop into_run;
};

Reduction Sum() { return {0.f, BestVariant<SumRunBody>(&SumRunBody::Run), BestVariant<AddRunBody>(&AddRunBody::Run)}; }

Reduction Max() {
  return {-std::numeric_limits<float>::infinity(), BestVariant<MaxRunBody>(&MaxRunBody::Run),
          BestVariant<MaxOfRunsBody>(&MaxOfRunsBody::Run)};
}

// Reduces any axes in one fixed order: the input is read once, front to back. Where the innermost axis is kept, row
// after row goes into the result; where it is reduced, a sum adds each run in lanes, then to the result.
class ReduceKernel : public Kernel {
 public:
  ReduceKernel(const KernelSpec& spec, const Reduction& reduction, bool mean)
      : dims_(ReducedDims(spec.inputs[0].shape, GetInts(spec.attributes, "axes", {}))),
        in_count_(spec.inputs[0].num_elements()),
        out_count_(spec.outputs[0].num_elements()),
        start_(reduction.start),
        mean_(mean),
        run_(dims_.back().out_step == 0 ? reduction.into_one : reduction.into_run) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    const float* x = static_cast<const float*>(operands[0]);
    float* const out = static_cast<float*>(operands[1]);
    std::fill_n(out, out_count_, start_);
    if (in_count_ > 0) RunDims(0, &x, out);
    // The mean of no elements is 0 / 0: NaN, as numpy's.
    if (mean_ && out_count_ > 0) divide_(out, static_cast<float>(in_count_ / out_count_), out_count_);
    return absl::OkStatus();
  }

 private:
  void RunDims(size_t depth, const float** x, float* out) const {
    const ReducedDim& dim = dims_[depth];
    if (depth + 1 == dims_.size()) {
      run_(*x, out, dim.extent);
      *x += dim.extent;
      return;
    }
    for (int64_t i = 0; i < dim.extent; ++i) RunDims(depth + 1, x, out + i * dim.out_step);
  }

  std::vector<ReducedDim> dims_;
  int64_t in_count_;
  int64_t out_count_;
  float start_;
  bool mean_;
  RunLoop run_;
  Loop<float*, float, int64_t> divide_ = BestVariant<DivideBody>(&DivideBody::Run);
};

}  // namespace

void RegisterReductionKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "reduce_sum", DType::kFloat32,
                    [](const KernelSpec& spec) { return std::make_unique<ReduceKernel>(spec, Sum(), false); });
  RegisterCpuKernel(registry, "reduce_mean", DType::kFloat32,
                    [](const KernelSpec& spec) { return std::make_unique<ReduceKernel>(spec, Sum(), true); });
  RegisterCpuKernel(registry, "reduce_max", DType::kFloat32,
                    [](const KernelSpec& spec) { return std::make_unique<ReduceKernel>(spec, Max(), false); });
}

}  // namespace pipeloom
