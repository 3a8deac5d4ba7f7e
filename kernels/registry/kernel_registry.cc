#include "kernels/registry/kernel_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {

void KernelRegistry::Register(KernelKey key, KernelFactory factory) {
  const bool inserted = factories_.emplace(key, std::move(factory)).second;
  PIPELOOM_CHECK(inserted, "two kernels for ", key.op, " on ", key.device, " of ", Info(key.dtype).name);
  keys_.push_back(std::move(key));
}

absl::StatusOr<std::unique_ptr<Kernel>> KernelRegistry::Create(const std::string& device,
                                                               const KernelSpec& spec) const {
  const std::vector<TensorType>& typed = spec.outputs.empty() ? spec.inputs : spec.outputs;
  const DType dtype = typed.empty() ? DType::kFloat32 : typed[0].dtype;
  if (auto it = factories_.find(KernelKey{spec.op, device, dtype}); it != factories_.end()) return it->second(spec);
  std::vector<std::string> have;
  for (const KernelKey& key : keys_) {
    if (key.op == spec.op) have.push_back(absl::StrCat(Info(key.dtype).name, " on ", key.device));
  }
  if (have.empty() && fallback_) return fallback_(spec);
  return absl::UnimplementedError(
      absl::StrCat("no kernel for ", spec.op, " of ", Info(dtype).name, " on ", device, "; ",
                   have.empty() ? "the op has none at all" : absl::StrCat("there is ", absl::StrJoin(have, ", "))));
}

}  // namespace pipeloom
