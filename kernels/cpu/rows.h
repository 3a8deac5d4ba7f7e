#ifndef KERNELS_CPU_ROWS_H_
#define KERNELS_CPU_ROWS_H_

#include <cstdint>

#include "kernels/base/tensor_type.h"
#include "kernels/cpu/simd.h"

namespace pipeloom {

// The rows of a tensor along its last axis: `count` pieces of `length` elements. None where they are empty.
struct Rows {
  explicit Rows(const TensorType& type)
      : length(type.shape.back()), count(length == 0 ? 0 : type.num_elements() / length) {}

  int64_t length;
  int64_t count;
};

// A reference: a vector that is returned would need the widest instruction set.
inline __attribute__((always_inline)) const UnalignedLanes& LanesAt(const float* x) {
  return *reinterpret_cast<const UnalignedLanes*>(x);
}

// Sums in the order of SumInLanes; parts of loop bodies, compiled for each instruction set with them.
inline __attribute__((always_inline)) float SumOf(const float* x, int64_t n) {
  return SumInLanes(
      n, [=](Lanes & sums, int64_t i) __attribute__((always_inline)) { sums += LanesAt(x + i); },
      [=](int64_t i) __attribute__((always_inline)) { return x[i]; });
}

inline __attribute__((always_inline)) float SumOfProducts(const float* x, const float* y, int64_t n) {
  return SumInLanes(
      n, [=](Lanes & sums, int64_t i) __attribute__((always_inline)) { sums += LanesAt(x + i) * LanesAt(y + i); },
      [=](int64_t i) __attribute__((always_inline)) { return x[i] * y[i]; });
}

}  // namespace pipeloom

#endif  // KERNELS_CPU_ROWS_H_
