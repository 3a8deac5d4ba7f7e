#ifndef KERNELS_CPU_SIMD_H_
#define KERNELS_CPU_SIMD_H_

#include <cstdint>

namespace pipeloom {

// A loop is written once, as `struct Body { PIPELOOM_LOOP Run(...) {...} };`, and compiled for three instruction sets;
// BestVariant<Body>(&Body::Run) picks one when a kernel is made. Plain function pointers instead of target_clones:
// those resolve before a sanitizer is set up. Which one is picked never changes a bit: element-wise loops round each
// element alone (nothing is contracted to FMA, see .bazelrc; one that is written rounds once in each), and sums go
// through Lanes.
#define PIPELOOM_LOOP static inline __attribute__((always_inline)) void

// No iteration depends on another: operands are distinct or exactly the same address (in place), which the compiler's
// own overlap test would send to the scalar loop.
#define PIPELOOM_INDEPENDENT _Pragma("GCC ivdep")

enum class VectorIsa { kBaseline, kAvx2, kAvx512 };

// The widest that this machine has.
inline VectorIsa BestVectorIsa() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return VectorIsa::kAvx512;
  }
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? VectorIsa::kAvx2 : VectorIsa::kBaseline;
}

template <typename Body, typename... Args>
__attribute__((target("avx512f,avx512dq,avx512vl"))) void RunAvx512(Args... args) {
  Body::Run(args...);
}

template <typename Body, typename... Args>
__attribute__((target("avx2,fma"))) void RunAvx2(Args... args) {
  Body::Run(args...);
}

template <typename Body, typename... Args>
void RunBaseline(Args... args) {
  Body::Run(args...);
}

template <typename... Args>
using Loop = void (*)(Args...);

template <typename Body, typename... Args>
Loop<Args...> Variant(VectorIsa isa, Loop<Args...>) {
  if (isa == VectorIsa::kAvx512) return &RunAvx512<Body, Args...>;
  if (isa == VectorIsa::kAvx2) return &RunAvx2<Body, Args...>;
  return &RunBaseline<Body, Args...>;
}

template <typename Body, typename... Args>
Loop<Args...> BestVariant(Loop<Args...> run) {
  return Variant<Body>(BestVectorIsa(), run);
}

// 16 floats added lane by lane: one register with AVX-512, two with AVX2, four without, the same sums in each.
typedef float Lanes __attribute__((vector_size(64)));
typedef float UnalignedLanes __attribute__((vector_size(64), aligned(4), may_alias));
inline constexpr int64_t kLanes = 16;

// A sum in one fixed order, whatever the vector width: element i goes to lane i mod 16 in order of i, then lane l takes
// lane l + 8, l + 4, l + 2, l + 1. `add_block(sums, i)` adds elements i .. i+15 to the lanes, `one(i)` is element i.
template <typename AddBlock, typename One>
static inline __attribute__((always_inline)) float SumInLanes(int64_t n, AddBlock add_block, One one) {
  Lanes sums = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) add_block(sums, i);
  for (; i < n; ++i) sums[i % kLanes] += one(i);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

}  // namespace pipeloom

#endif  // KERNELS_CPU_SIMD_H_
