#include "kernels/base/buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace pipeloom {

Buffer::Buffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* memory = std::aligned_alloc(kAlignment, AlignUp(bytes));
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, AlignUp(bytes));
  data_.reset(static_cast<char*>(memory));
}

void Buffer::Free::operator()(char* data) const { std::free(data); }

}  // namespace pipeloom
