#ifndef KERNELS_BASE_ELEMENTS_H_
#define KERNELS_BASE_ELEMENTS_H_

#include <vector>

#include "absl/types/span.h"
#include "kernels/base/buffer.h"

namespace pipeloom {

// Elements of any type as doubles, which hold all of them but whole numbers beyond 2^53. For constants and tests, not
// for what runs often.

// Writes `elements`, each rounded to the type of `to`: all of its elements, or one that all become equal to. A bool
// becomes true by any number but 0.
void StoreElements(absl::Span<const double> elements, const TensorView& to);
std::vector<double> LoadElements(const TensorView& from);

}  // namespace pipeloom

#endif  // KERNELS_BASE_ELEMENTS_H_
