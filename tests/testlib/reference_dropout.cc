#include <array>
#include <cstdint>

#include "kernels/base/philox.h"
#include "tests/testlib/reference_family.h"

namespace pipeloom::reference {
namespace {

std::array<uint32_t, 2> Words(uint64_t value) {
  return {static_cast<uint32_t>(value % 0x100000000), static_cast<uint32_t>(value / 0x100000000)};
}

// From the definition, an element at a time; Philox itself is compared with its authors' known answers.
Tensors Dropout(const Tensors& in, const AttributeMap& attributes, const Types& out) {
  const double p = GetDouble(attributes, "p", 0.5);
  const auto seed = Words(static_cast<uint64_t>(GetInt(attributes, "seed", 0)));
  const auto site = Words(static_cast<uint64_t>(GetInt(attributes, "site", 0)));
  const auto step = Words(static_cast<uint64_t>(in[1].values[0]));
  const auto micro_batch = Words(static_cast<uint64_t>(in[2].values[0]));
  const auto mixed = Philox4x32({site[0], site[1], step[0], step[1]}, seed);
  RefTensor y = Zeros(out[0]);
  for (size_t i = 0; i < y.values.size(); ++i) {
    const auto block = Words(i / 4);
    const auto words = Philox4x32({block[0], block[1], micro_batch[0], micro_batch[1]}, {mixed[0], mixed[1]});
    if (words[i % 4] / 0x1p32 >= p) y.values[i] = in[0].values[i] / (1 - p);
  }
  return {y};
}

// A graph of one micro-batch is its first.
Tensors MicroBatchIndex(const Tensors&, const AttributeMap&, const Types& out) { return {Zeros(out[0])}; }

}  // namespace

References DropoutReferences() {
  return {
      {"dropout", Dropout},
      {"micro_batch_index", MicroBatchIndex},
  };
}

}  // namespace pipeloom::reference
