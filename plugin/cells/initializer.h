#ifndef PLUGIN_CELLS_INITIALIZER_H_
#define PLUGIN_CELLS_INITIALIZER_H_

#include <functional>

#include "absl/types/span.h"
#include "kernels/base/tensor_type.h"
#include "plugin/cells/counter_random.h"

namespace pipeloom {

// Fills `values`, the row-major elements of a parameter of `shape`, each from `random` and its own index.
using Initializer = std::function<void(const Shape& shape, const CounterRandom& random, absl::Span<float> values)>;

// MindSpore's initializers with its defaults. The fans of a shape are MindSpore's too: fan-in is shape[1], fan-out is
// shape[0], each times the extents that follow; both are shape[0] for one dimension, 1 for a scalar.
Initializer Zeros();
Initializer Ones();
// U(-scale, scale).
Initializer Uniform(double scale = 0.07);
Initializer Normal(double sigma = 0.01, double mean = 0.0);
// U(-b, b) with b = sqrt(6 / ((1 + negative_slope^2) fan-in)): K. He and others, "Delving Deep into Rectifiers", 2015.
Initializer HeUniform(double negative_slope = 0.0);
// U(-b, b) with b = gain sqrt(6 / (fan-in + fan-out)): X. Glorot, Y. Bengio, "Understanding the difficulty of training
// deep feedforward neural networks", 2010.
Initializer XavierUniform(double gain = 1.0);

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_INITIALIZER_H_
