#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "kernels/cpu/families.h"
#include "kernels/cpu/rows.h"

namespace pipeloom {
namespace {

// Of a row x; the normalized row is (x - mean) scale.
struct Statistics {
  float mean;
  float scale;  // 1 / sqrt(variance + eps)
};

// In two passes: a variance from squares alone would cancel where the mean is large.
inline __attribute__((always_inline)) Statistics StatisticsOf(const float* x, int64_t n, float eps) {
  const float mean = SumOf(x, n) / static_cast<float>(n);
  const float squares = SumInLanes(
      n,
      [=](Lanes & sums, int64_t i) __attribute__((always_inline)) {
        const Lanes difference = LanesAt(x + i) - mean;
        sums += difference * difference;
      },
      [=](int64_t i) __attribute__((always_inline)) { return (x[i] - mean) * (x[i] - mean); });
  return {mean, 1.f / std::sqrt(squares / static_cast<float>(n) + eps)};
}

struct LayerNormBody {
  PIPELOOM_LOOP Run(void* const* operands, Rows rows, float eps) {
    const float* x = static_cast<const float*>(operands[0]);
    const float* gamma = static_cast<const float*>(operands[1]);
    const float* beta = static_cast<const float*>(operands[2]);
    float* y = static_cast<float*>(operands[3]);
    for (int64_t row = 0; row < rows.count; ++row, x += rows.length, y += rows.length) {
      const Statistics of_row = StatisticsOf(x, rows.length, eps);
      PIPELOOM_INDEPENDENT
      for (int64_t i = 0; i < rows.length; ++i) y[i] = (x[i] - of_row.mean) * of_row.scale * gamma[i] + beta[i];
    }
  }
};

// With g = dy gamma and the normalized row h: dx = scale (g - mean of g - h (mean of g h)).
struct LayerNormGradXBody {
  PIPELOOM_LOOP Run(void* const* operands, Rows rows, float eps) {
    const float* dy = static_cast<const float*>(operands[0]);
    const float* x = static_cast<const float*>(operands[1]);
    const float* gamma = static_cast<const float*>(operands[2]);
    float* dx = static_cast<float*>(operands[3]);
    const float n = static_cast<float>(rows.length);
    for (int64_t row = 0; row < rows.count; ++row, dy += rows.length, x += rows.length, dx += rows.length) {
      const Statistics of_row = StatisticsOf(x, rows.length, eps);
      const float mean_g = SumOfProducts(dy, gamma, rows.length) / n;
      const float mean_gh = SumOfGh(dy, x, gamma, rows.length, of_row) / n;
      PIPELOOM_INDEPENDENT
      for (int64_t i = 0; i < rows.length; ++i) {
        const float h = (x[i] - of_row.mean) * of_row.scale;
        dx[i] = of_row.scale * (dy[i] * gamma[i] - mean_g - h * mean_gh);
      }
    }
  }

  static inline __attribute__((always_inline)) float SumOfGh(const float* dy, const float* x, const float* gamma,
                                                             int64_t n, Statistics of_row) {
    const float mean = of_row.mean;
    const float scale = of_row.scale;
    return SumInLanes(
        n,
        [=](Lanes & sums, int64_t i) __attribute__((always_inline)) {
          sums += LanesAt(dy + i) * LanesAt(gamma + i) * ((LanesAt(x + i) - mean) * scale);
        },
        [=](int64_t i) __attribute__((always_inline)) { return dy[i] * gamma[i] * ((x[i] - mean) * scale); });
  }
};

// The sum of dy h over the rows, added row by row.
struct LayerNormGradGammaBody {
  PIPELOOM_LOOP Run(void* const* operands, Rows rows, float eps) {
    const float* dy = static_cast<const float*>(operands[0]);
    const float* x = static_cast<const float*>(operands[1]);
    float* dgamma = static_cast<float*>(operands[2]);
    std::fill_n(dgamma, rows.length, 0.f);
    for (int64_t row = 0; row < rows.count; ++row, dy += rows.length, x += rows.length) {
      const Statistics of_row = StatisticsOf(x, rows.length, eps);
      PIPELOOM_INDEPENDENT
      for (int64_t i = 0; i < rows.length; ++i) dgamma[i] += dy[i] * ((x[i] - of_row.mean) * of_row.scale);
    }
  }
};

// Statistics are made again from x in each of the three, instead of being kept for every micro-batch under way.
class LayerNormKernel : public Kernel {
 public:
  using RowsLoop = Loop<void* const*, Rows, float>;

  LayerNormKernel(RowsLoop loop, const KernelSpec& spec)
      : loop_(loop), rows_(spec.inputs[0]), eps_(static_cast<float>(GetDouble(spec.attributes, "eps", 1e-5))) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    loop_(operands.data(), rows_, eps_);
    return absl::OkStatus();
  }

 private:
  RowsLoop loop_;
  Rows rows_;
  float eps_;
};

template <typename Body>
absl::StatusOr<std::unique_ptr<Kernel>> MakeLayerNormKernel(const KernelSpec& spec) {
  return std::make_unique<LayerNormKernel>(BestVariant<Body>(&Body::Run), spec);
}

}  // namespace

void RegisterLayerNormKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "layer_norm", DType::kFloat32, &MakeLayerNormKernel<LayerNormBody>);
  RegisterCpuKernel(registry, "layer_norm_grad_x", DType::kFloat32, &MakeLayerNormKernel<LayerNormGradXBody>);
  RegisterCpuKernel(registry, "layer_norm_grad_gamma", DType::kFloat32, &MakeLayerNormKernel<LayerNormGradGammaBody>);
}

}  // namespace pipeloom
