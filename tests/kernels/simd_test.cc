// Loops give the same bits for every instruction set that this machine has.

#include "kernels/cpu/simd.h"

#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace pipeloom {
namespace {

struct SumBody {
  PIPELOOM_LOOP Run(const float* x, float* out, int64_t n) {
    *out = SumInLanes(
        n,
        [=](Lanes & sums, int64_t i)
            __attribute__((always_inline)) { sums += *reinterpret_cast<const UnalignedLanes*>(x + i); },
        [=](int64_t i) __attribute__((always_inline)) { return x[i]; });
  }
};

// Would differ where a multiply and an add were contracted to one rounding.
struct MultiplyAddBody {
  PIPELOOM_LOOP Run(const float* x, float* out, int64_t n) {
    PIPELOOM_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] * 1.1f + x[i];
  }
};

std::vector<VectorIsa> IsasOfThisMachine() {
  std::vector<VectorIsa> isas = {VectorIsa::kBaseline};
  if (BestVectorIsa() >= VectorIsa::kAvx2) isas.push_back(VectorIsa::kAvx2);
  if (BestVectorIsa() >= VectorIsa::kAvx512) isas.push_back(VectorIsa::kAvx512);
  return isas;
}

std::vector<float> Random(int64_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& value : x) value = normal(random);
  return x;
}

TEST(Simd, SumsHaveOneOrder) {
  for (const int64_t n : {0, 1, 15, 16, 17, 1023, 100000}) {
    const std::vector<float> x = Random(n);
    // The documented order, written out: element i to lane i mod 16, then halves onto halves.
    float lanes[16] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i % 16] += x[i];
    for (int half = 8; half > 0; half /= 2) {
      for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    for (const VectorIsa isa : IsasOfThisMachine()) {
      float sum = -1;
      Variant<SumBody>(isa, &SumBody::Run)(x.data(), &sum, n);
      EXPECT_EQ(std::memcmp(&sum, &lanes[0], sizeof(float)), 0) << "isa " << static_cast<int>(isa) << ", n " << n;
    }
  }
}

TEST(Simd, NothingIsContracted) {
  const std::vector<float> x = Random(1023);
  for (const VectorIsa isa : IsasOfThisMachine()) {
    std::vector<float> out(x.size());
    Variant<MultiplyAddBody>(isa, &MultiplyAddBody::Run)(x.data(), out.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const volatile float product = x[i] * 1.1f;  // rounded on its own
      ASSERT_EQ(out[i], product + x[i]) << "isa " << static_cast<int>(isa);
    }
  }
}

}  // namespace
}  // namespace pipeloom
