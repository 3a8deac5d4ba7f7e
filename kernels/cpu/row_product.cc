#include "kernels/cpu/row_product.h"

#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/simd.h"

namespace pipeloom {
namespace {

#define PIPELOOM_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl")))
#define PIPELOOM_AVX512_TILE PIPELOOM_AVX512 __attribute__((always_inline)) static inline

// A tile of the result lives in registers: 8 rows x 3 vectors (or columns) are 24 of the 32.
constexpr int kTileRows = 8;
constexpr int kTileVectors = 3;
// Rows of b to fetch ahead: its rows lie apart, so that the hardware does not guess them.
constexpr int64_t kAhead = 8;

// Unrolled, or the tile would be an array in memory.
#define PIPELOOM_UNROLL _Pragma("GCC unroll 8")

constexpr __mmask16 FirstLanes(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }

// kRows rows of c by 16 * (kVectors - 1) columns and the lanes `last` of 16 more.
template <int kRows, int kVectors>
PIPELOOM_AVX512_TILE void PlainTile(const float* a, const float* b, float* c, int64_t k, int64_t n, __mmask16 last) {
  const auto lanes = [last](int v) { return v + 1 == kVectors ? last : FirstLanes(16); };
  __m512 sums[kRows][kVectors];
  for (auto& row : sums) std::fill_n(row, kVectors, _mm512_setzero_ps());
  for (int64_t p = 0; p < k; ++p, b += n) {
    __m512 terms[kVectors];
    PIPELOOM_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      terms[v] = _mm512_maskz_loadu_ps(lanes(v), b + 16 * v);
      _mm_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(b + 16 * v) + kAhead * n * sizeof(float)),
                   _MM_HINT_T0);
    }
    PIPELOOM_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const __m512 factor = _mm512_set1_ps(a[r * k + p]);
      PIPELOOM_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_fmadd_ps(factor, terms[v], sums[r][v]);
    }
  }
  PIPELOOM_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PIPELOOM_UNROLL
    for (int v = 0; v < kVectors; ++v) _mm512_mask_storeu_ps(c + r * n + 16 * v, lanes(v), sums[r][v]);
  }
}

template <int kRows>
PIPELOOM_AVX512 void PlainRows(const float* a, const float* b, float* c, int64_t k, int64_t n) {
  for (int64_t j = 0; j < n; j += 16 * kTileVectors) {
    const int64_t rest = std::min<int64_t>(n - j, 16 * kTileVectors);
    if (rest > 32) {
      PlainTile<kRows, 3>(a, b + j, c + j, k, n, FirstLanes(rest - 32));
    } else if (rest > 16) {
      PlainTile<kRows, 2>(a, b + j, c + j, k, n, FirstLanes(rest - 16));
    } else {
      PlainTile<kRows, 1>(a, b + j, c + j, k, n, FirstLanes(rest));
    }
  }
}

PIPELOOM_AVX512_TILE float SumOfLanes(__m512 x) {
  const __m256 eight = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
                       __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m128 four =
      __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  const __m128 two = four + __builtin_shufflevector(four, four, 2, 3, 2, 3);
  return two[0] + two[1];
}

// Adds the terms of `lanes` to the sums of kRows rows by kColumns columns of c.
template <int kRows, int kColumns>
PIPELOOM_AVX512_TILE void AddTerms(const float* a, const float* b, int64_t k, __mmask16 lanes,
                                   __m512 (&sums)[kRows][kColumns]) {
  __m512 terms[kColumns];
  PIPELOOM_UNROLL
  for (int j = 0; j < kColumns; ++j) terms[j] = _mm512_maskz_loadu_ps(lanes, b + j * k);
  PIPELOOM_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const __m512 factors = _mm512_maskz_loadu_ps(lanes, a + r * k);
    PIPELOOM_UNROLL
    for (int j = 0; j < kColumns; ++j) sums[r][j] = _mm512_fmadd_ps(factors, terms[j], sums[r][j]);
  }
}

template <int kRows, int kColumns>
PIPELOOM_AVX512_TILE void TransposedTile(const float* a, const float* b, float* c, int64_t k, int64_t n) {
  __m512 sums[kRows][kColumns];
  for (auto& row : sums) std::fill_n(row, kColumns, _mm512_setzero_ps());
  int64_t p = 0;
  for (; p + 16 <= k; p += 16) AddTerms(a + p, b + p, k, FirstLanes(16), sums);
  if (p < k) AddTerms(a + p, b + p, k, FirstLanes(k - p), sums);
  PIPELOOM_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PIPELOOM_UNROLL
    for (int j = 0; j < kColumns; ++j) c[r * n + j] = SumOfLanes(sums[r][j]);
  }
}

template <int kRows>
PIPELOOM_AVX512 void TransposedRows(const float* a, const float* b, float* c, int64_t k, int64_t n) {
  int64_t j = 0;
  for (; j + kTileVectors <= n; j += kTileVectors) TransposedTile<kRows, kTileVectors>(a, b + j * k, c + j, k, n);
  for (; j < n; ++j) TransposedTile<kRows, 1>(a, b + j * k, c + j, k, n);
}

template <int kRows>
void RowBlock(bool transpose_b, const float* a, const float* b, float* c, int64_t k, int64_t n) {
  transpose_b ? TransposedRows<kRows>(a, b, c, k, n) : PlainRows<kRows>(a, b, c, k, n);
}

// The last m < kTileRows rows.
template <int kRows>
void LastRows(bool transpose_b, const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  if (m == kRows) {
    RowBlock<kRows>(transpose_b, a, b, c, k, n);
  } else if constexpr (kRows > 1) {
    LastRows<kRows - 1>(transpose_b, a, b, c, m, k, n);
  }
}

template <bool kTransposeB>
void Product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  for (; m >= kTileRows; m -= kTileRows, a += kTileRows * k, c += kTileRows * n) {
    RowBlock<kTileRows>(kTransposeB, a, b, c, k, n);
  }
  LastRows<kTileRows - 1>(kTransposeB, a, b, c, m, k, n);
}

}  // namespace

RowProduct FindRowProduct(bool transpose_b) {
  if (BestVectorIsa() != VectorIsa::kAvx512) return nullptr;
  return transpose_b ? &Product<true> : &Product<false>;
}

}  // namespace pipeloom
