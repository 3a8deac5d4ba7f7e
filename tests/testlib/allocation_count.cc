#include "tests/testlib/allocation_count.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<int64_t> g_allocations{0};

bool IsInOneDnn(void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr && std::strstr(info.dli_fname, "libdnnl") != nullptr;
}

}  // namespace

// In a file of their own, so that no caller inlines one half of a pair.
void* operator new(size_t bytes) {
  if (!IsInOneDnn(__builtin_return_address(0))) g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace pipeloom {

int64_t AllocationCount() { return g_allocations.load(std::memory_order_relaxed); }

}  // namespace pipeloom
