#ifndef KERNELS_BASE_DIGEST_H_
#define KERNELS_BASE_DIGEST_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace pipeloom {

// FNV-1a over 64 bits (G. Fowler, L. C. Noll, P. Vo): the same number for the same bytes on every machine.
inline uint64_t Digest(absl::string_view bytes) {
  uint64_t digest = 14695981039346656037u;
  for (const char c : bytes) digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return digest;
}

}  // namespace pipeloom

#endif  // KERNELS_BASE_DIGEST_H_
