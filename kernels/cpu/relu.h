#ifndef KERNELS_CPU_RELU_H_
#define KERNELS_CPU_RELU_H_

#include <cstdint>

#include "kernels/cpu/simd.h"

namespace pipeloom {

// One loop for the op and for matmul's epilogue, hence the same bits. NaN stays NaN, so that a run that diverged shows
// in its loss.
struct ReluBody {
  PIPELOOM_LOOP Run(const float* x, float* y, int64_t n) {
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const float value = x[i];
      y[i] = value < 0.f ? 0.f : value;
    }
  }
};

}  // namespace pipeloom

#endif  // KERNELS_CPU_RELU_H_
