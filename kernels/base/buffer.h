#ifndef KERNELS_BASE_BUFFER_H_
#define KERNELS_BASE_BUFFER_H_

#include <cstddef>
#include <memory>

#include "kernels/base/tensor_type.h"

namespace pipeloom {

// Borrowed dense row-major elements of `type`. The owner must outlive it.
struct TensorView {
  void* data = nullptr;
  TensorType type;
};

// Owned host memory, 64-byte aligned (a cache line, and the widest vector register), zeroed at birth.
class Buffer {
 public:
  static constexpr size_t kAlignment = 64;

  Buffer() = default;
  explicit Buffer(size_t bytes);
  char* data() { return data_.get(); }
  const char* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(char* data) const;
  };
  std::unique_ptr<char, Free> data_;
  size_t size_ = 0;
};

// Smallest multiple of Buffer::kAlignment that is not less than `bytes`.
constexpr size_t AlignUp(size_t bytes) {
  return (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
}

// An owned tensor: a buffer with its type.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorType type) : type_(std::move(type)), buffer_(static_cast<size_t>(type_.bytes())) {}

  const TensorType& type() const { return type_; }
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(buffer_.data());
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(buffer_.data());
  }
  TensorView view() { return {buffer_.data(), type_}; }

 private:
  TensorType type_;
  Buffer buffer_;
};

}  // namespace pipeloom

#endif  // KERNELS_BASE_BUFFER_H_
