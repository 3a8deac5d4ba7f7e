#include <array>
#include <cmath>
#include <cstdint>
#include <memory>

#include "kernels/base/philox.h"
#include "kernels/cpu/families.h"

namespace pipeloom {
namespace {

// (x, step, micro-batch). Each element is kept, and divided by the share that is kept, or becomes 0: a function of
// (seed, step, micro-batch, site, element) alone. The step's key is Philox of (site, step) by the seed's key; by it,
// four elements at a time are decided by Philox of (element / 4, micro-batch).
class DropoutKernel : public Kernel {
 public:
  explicit DropoutKernel(const KernelSpec& spec)
      : count_(spec.inputs[0].num_elements()),
        seed_(static_cast<uint64_t>(GetInt(spec.attributes, "seed", 0))),
        site_(static_cast<uint64_t>(GetInt(spec.attributes, "site", 0))) {
    const double p = GetDouble(spec.attributes, "p", 0.5);
    first_kept_ = static_cast<uint64_t>(std::ceil(p * 0x1p32));
    scale_ = static_cast<float>(1 / (1 - p));
  }

  absl::Status Run(absl::Span<void* const> operands, void*) override {
    const float* const x = static_cast<const float*>(operands[0]);
    float* const y = static_cast<float*>(operands[3]);
    const auto step = static_cast<uint64_t>(*static_cast<const int64_t*>(operands[1]));
    const auto micro_batch = static_cast<uint64_t>(*static_cast<const int64_t*>(operands[2]));
    const std::array<uint32_t, 4> mixed =
        Philox4x32({LowWord(site_), HighWord(site_), LowWord(step), HighWord(step)}, {LowWord(seed_), HighWord(seed_)});
    for (int64_t begin = 0; begin < count_; begin += 4) {
      const auto block = static_cast<uint64_t>(begin / 4);
      const std::array<uint32_t, 4> words = Philox4x32(
          {LowWord(block), HighWord(block), LowWord(micro_batch), HighWord(micro_batch)}, {mixed[0], mixed[1]});
      for (int64_t i = begin; i < count_ && i < begin + 4; ++i) {
        y[i] = words[static_cast<size_t>(i - begin)] >= first_kept_ ? x[i] * scale_ : 0.f;
      }
    }
    return absl::OkStatus();
  }

 private:
  int64_t count_;
  uint64_t seed_;
  uint64_t site_;
  uint64_t first_kept_;  // of the 2^32 words
  float scale_;
};

}  // namespace

void RegisterDropoutKernels(KernelRegistry& registry) {
  RegisterCpuKernel(registry, "dropout", DType::kFloat32,
                    [](const KernelSpec& spec) { return std::make_unique<DropoutKernel>(spec); });
}

}  // namespace pipeloom
