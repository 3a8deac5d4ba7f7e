#include "tests/testlib/allocation_count.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace pipeloom {
namespace {

std::atomic<int64_t> all_allocations{0};
thread_local int64_t own_allocations = 0;

bool IsInOneDnn(void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr && std::strstr(info.dli_fname, "libdnnl") != nullptr;
}

// nullptr where there is no memory. `caller` is who called operator new.
void* Allocate(std::size_t bytes, std::size_t alignment, void* caller) {
  if (!IsInOneDnn(caller)) {
    all_allocations.fetch_add(1, std::memory_order_relaxed);
    ++own_allocations;
  }
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}

void* AllocateOrThrow(std::size_t bytes, std::size_t alignment, void* caller) {
  if (void* memory = Allocate(bytes, alignment, caller)) return memory;
  throw std::bad_alloc();
}

}  // namespace

int64_t AllocationCount() { return all_allocations.load(std::memory_order_relaxed); }
int64_t AllocationsOfThisThread() { return own_allocations; }

}  // namespace pipeloom

// In a file of their own, so that no caller inlines one half of a pair. The array forms of the library call these.
void* operator new(std::size_t bytes) {
  return pipeloom::AllocateOrThrow(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__, __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return pipeloom::AllocateOrThrow(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return pipeloom::Allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__, __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
