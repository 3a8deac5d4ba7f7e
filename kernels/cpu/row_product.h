#ifndef KERNELS_CPU_ROW_PRODUCT_H_
#define KERNELS_CPU_ROW_PRODUCT_H_

#include <cstdint>

namespace pipeloom {

// c[m,n] = a[m,k] x b, b plain: [k,n], or [n,k] where it is transposed. Made for the few rows of a small micro-batch:
// there oneDNN's brgemm first copies all of a plain b, which costs as much as the product itself. Measured at 8 rows,
// this takes half of brgemm's time (b transposed: 0.6 of it); at 32 they are about equal, at 128 brgemm is better.
using RowProduct = void (*)(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n);

// nullptr where the machine has no AVX-512. Every element of c is one chain of fused multiply-adds in an order that
// depends on k alone, hence on no size, address or thread:
//   b plain: the k terms one after another, from 0.
//   b transposed: term p goes to lane p mod 16, then lane l takes lane l + 8, l + 4, l + 2, l + 1.
RowProduct FindRowProduct(bool transpose_b);

}  // namespace pipeloom

#endif  // KERNELS_CPU_ROW_PRODUCT_H_
