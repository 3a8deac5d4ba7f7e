#include <cmath>
#include <cstdint>
#include <memory>

#include "kernels/base/status_macros.h"
#include "kernels/cpu/families.h"
#include "kernels/cpu/rows.h"

namespace pipeloom {
namespace {

// Writes exp(x - largest), so that none overflows, and returns their sum. A NaN in the row makes the sum NaN, and with
// it the whole row, whether it became the largest or not.
inline __attribute__((always_inline)) float Exponentials(const float* x, float largest, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = std::exp(x[i] - largest);
  return SumOf(out, n);
}

inline __attribute__((always_inline)) float LargestOf(const float* x, int64_t n) {
  float largest = x[0];
  for (int64_t i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

struct SoftmaxRow {
  PIPELOOM_LOOP Run(const float* x, float* y, int64_t n) {
    const float sum = Exponentials(x, LargestOf(x, n), y, n);
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) y[i] /= sum;
  }
};

struct LogSoftmaxRow {
  PIPELOOM_LOOP Run(const float* x, float* y, int64_t n) {
    const float largest = LargestOf(x, n);
    const float log_of_sum = std::log(Exponentials(x, largest, y, n));
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - largest) - log_of_sum;
  }
};

// dx_i = y_i (dy_i - sum of dy_j y_j).
struct SoftmaxGradRow {
  PIPELOOM_LOOP Run(const float* dy, const float* y, float* dx, int64_t n) {
    const float sum = SumOfProducts(dy, y, n);
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - sum);
  }
};

// dx_i = dy_i - exp(y_i) (sum of dy_j).
struct LogSoftmaxGradRow {
  PIPELOOM_LOOP Run(const float* dy, const float* y, float* dx, int64_t n) {
    const float sum = SumOf(dy, n);
    for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] - std::exp(y[i]) * sum;
  }
};

template <typename Row>
struct RowsOfOne {
  PIPELOOM_LOOP Run(void* const* operands, int64_t rows, int64_t n) {
    const float* x = static_cast<const float*>(operands[0]);
    float* y = static_cast<float*>(operands[1]);
    for (int64_t row = 0; row < rows; ++row, x += n, y += n) Row::Run(x, y, n);
  }
};

template <typename Row>
struct RowsOfTwo {
  PIPELOOM_LOOP Run(void* const* operands, int64_t rows, int64_t n) {
    const float* dy = static_cast<const float*>(operands[0]);
    const float* y = static_cast<const float*>(operands[1]);
    float* dx = static_cast<float*>(operands[2]);
    for (int64_t row = 0; row < rows; ++row, dy += n, y += n, dx += n) Row::Run(dy, y, dx, n);
  }
};

// One row after the other, each along the last axis and with no say in another.
class RowsKernel : public Kernel {
 public:
  using RowsLoop = Loop<void* const*, int64_t, int64_t>;

  RowsKernel(RowsLoop loop, const TensorType& x) : loop_(loop), rows_(x) {}

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    loop_(operands.data(), rows_.count, rows_.length);
    return absl::OkStatus();
  }

 private:
  RowsLoop loop_;
  Rows rows_;
};

template <typename Body>
absl::StatusOr<std::unique_ptr<Kernel>> MakeRowsKernel(const KernelSpec& spec) {
  const TensorType& x = spec.inputs[0];
  PIPELOOM_CHECK(x.rank() > 0, spec.op, " of ", x.ToString());
  return std::make_unique<RowsKernel>(BestVariant<Body>(&Body::Run), x);
}

}  // namespace

void RegisterSoftmaxKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "softmax", DType::kFloat32, &MakeRowsKernel<RowsOfOne<SoftmaxRow>>);
  RegisterCpuKernel(registry, "softmax_grad", DType::kFloat32, &MakeRowsKernel<RowsOfTwo<SoftmaxGradRow>>);
  RegisterCpuKernel(registry, "log_softmax", DType::kFloat32, &MakeRowsKernel<RowsOfOne<LogSoftmaxRow>>);
  RegisterCpuKernel(registry, "log_softmax_grad", DType::kFloat32, &MakeRowsKernel<RowsOfTwo<LogSoftmaxGradRow>>);
}

}  // namespace pipeloom
