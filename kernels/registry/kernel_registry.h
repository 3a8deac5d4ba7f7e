#ifndef KERNELS_REGISTRY_KERNEL_REGISTRY_H_
#define KERNELS_REGISTRY_KERNEL_REGISTRY_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "kernels/registry/kernel.h"

namespace pipeloom {

// `dtype` is that of the first output, or of the first input for a kernel without outputs; f32 for one without either.
struct KernelKey {
  std::string op;
  std::string device;  // "cpu"
  DType dtype = DType::kFloat32;

  friend bool operator==(const KernelKey& a, const KernelKey& b) {
    return a.op == b.op && a.device == b.device && a.dtype == b.dtype;
  }
  template <typename H>
  friend H AbslHashValue(H h, const KernelKey& key) {
    return H::combine(std::move(h), key.op, key.device, key.dtype);
  }
};

using KernelFactory = std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const KernelSpec&)>;

// Kernels by key: a value that its maker fills (RegisterCpuKernels(registry)) and hands on; never global.
class KernelRegistry {
 public:
  // A second factory for one key is a bug.
  void Register(KernelKey key, KernelFactory factory);

  // Makes the kernels of ops that have none at all here; an empty factory makes none.
  void SetFallback(KernelFactory factory) { fallback_ = std::move(factory); }

  // A kernel for `spec` on `device`. Unimplemented, naming op, device, dtype and what there is, where no factory fits;
  // otherwise what the factory says.
  absl::StatusOr<std::unique_ptr<Kernel>> Create(const std::string& device, const KernelSpec& spec) const;

  // All keys, in the order of registration; for tests that go over every kernel.
  const std::vector<KernelKey>& keys() const { return keys_; }

 private:
  absl::flat_hash_map<KernelKey, KernelFactory> factories_;
  std::vector<KernelKey> keys_;
  KernelFactory fallback_;
};

}  // namespace pipeloom

#endif  // KERNELS_REGISTRY_KERNEL_REGISTRY_H_
