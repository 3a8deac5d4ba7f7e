#include "plugin/cells/initializer.h"

#include <algorithm>
#include <cmath>

namespace pipeloom {
namespace {

struct Fans {
  double in;
  double out;
};

Fans FansOf(const Shape& shape) {
  if (shape.empty()) return {1.0, 1.0};
  if (shape.size() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double field = 1.0;
  for (size_t i = 2; i < shape.size(); ++i) field *= static_cast<double>(shape[i]);
  return {static_cast<double>(shape[1]) * field, static_cast<double>(shape[0]) * field};
}

void FillUniform(double bound, const CounterRandom& random, absl::Span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(bound * (2.0 * random.Uniform(i) - 1.0));
}

Initializer Constant(float value) {
  return [value](const Shape&, const CounterRandom&, absl::Span<float> values) {
    std::fill(values.begin(), values.end(), value);
  };
}

}  // namespace

Initializer Zeros() { return Constant(0.0f); }

Initializer Ones() { return Constant(1.0f); }

Initializer Uniform(double scale) {
  return [scale](const Shape&, const CounterRandom& random, absl::Span<float> values) {
    FillUniform(scale, random, values);
  };
}

Initializer Normal(double sigma, double mean) {
  return [sigma, mean](const Shape&, const CounterRandom& random, absl::Span<float> values) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(mean + sigma * random.Normal(i));
  };
}

Initializer HeUniform(double negative_slope) {
  return [negative_slope](const Shape& shape, const CounterRandom& random, absl::Span<float> values) {
    FillUniform(std::sqrt(6.0 / ((1.0 + negative_slope * negative_slope) * FansOf(shape).in)), random, values);
  };
}

Initializer XavierUniform(double gain) {
  return [gain](const Shape& shape, const CounterRandom& random, absl::Span<float> values) {
    const Fans fans = FansOf(shape);
    FillUniform(gain * std::sqrt(6.0 / (fans.in + fans.out)), random, values);
  };
}

}  // namespace pipeloom
