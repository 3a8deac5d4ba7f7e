#include <cmath>
#include <cstdint>

#include "kernels/cpu/families.h"
#include "kernels/cpu/map_kernel.h"

namespace pipeloom {
namespace {

// y = Function::Apply(x), element by element.
template <typename Function>
struct UnaryBody {
  PIPELOOM_LOOP Run(void* const* operands, int64_t n) {
    const float* x = static_cast<const float*>(operands[0]);
    float* y = static_cast<float*>(operands[1]);
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) y[i] = Function::Apply(x[i]);
  }
};

struct Exp {
  static inline __attribute__((always_inline)) float Apply(float x) { return std::exp(x); }
};
struct Log {
  static inline __attribute__((always_inline)) float Apply(float x) { return std::log(x); }
};
struct Sqrt {
  static inline __attribute__((always_inline)) float Apply(float x) { return std::sqrt(x); }
};
struct Rsqrt {
  static inline __attribute__((always_inline)) float Apply(float x) { return 1.f / std::sqrt(x); }
};
struct Square {
  static inline __attribute__((always_inline)) float Apply(float x) { return x * x; }
};
struct Reciprocal {
  static inline __attribute__((always_inline)) float Apply(float x) { return 1.f / x; }
};
struct Abs {
  static inline __attribute__((always_inline)) float Apply(float x) { return std::abs(x); }
};
struct Erf {
  static inline __attribute__((always_inline)) float Apply(float x) { return std::erf(x); }
};
struct Sin {
  static inline __attribute__((always_inline)) float Apply(float x) { return std::sin(x); }
};
struct Cos {
  static inline __attribute__((always_inline)) float Apply(float x) { return std::cos(x); }
};
// NaN stays NaN, and 0 itself.
struct Sign {
  static inline __attribute__((always_inline)) float Apply(float x) { return x > 0 ? 1.f : (x < 0 ? -1.f : x); }
};
struct Floor {
  static inline __attribute__((always_inline)) float Apply(float x) { return std::floor(x); }
};

template <typename Function>
void RegisterUnary(KernelRegistry& registry, const char* op) {
  RegisterCpuKernel(registry, op, DType::kFloat32, &MakeMapKernel<UnaryBody<Function>>);
}

}  // namespace

void RegisterMathKernels(KernelRegistry& registry) {
  RegisterUnary<Exp>(registry, "exp");
  RegisterUnary<Log>(registry, "log");
  RegisterUnary<Sqrt>(registry, "sqrt");
  RegisterUnary<Rsqrt>(registry, "rsqrt");
  RegisterUnary<Square>(registry, "square");
  RegisterUnary<Reciprocal>(registry, "reciprocal");
  RegisterUnary<Abs>(registry, "abs");
  RegisterUnary<Erf>(registry, "erf");
  RegisterUnary<Sin>(registry, "sin");
  RegisterUnary<Cos>(registry, "cos");
  RegisterUnary<Sign>(registry, "sign");
  RegisterUnary<Floor>(registry, "floor");
}

}  // namespace pipeloom
