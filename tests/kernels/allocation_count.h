#ifndef TESTS_KERNELS_ALLOCATION_COUNT_H_
#define TESTS_KERNELS_ALLOCATION_COUNT_H_

#include <cstdint>

namespace pipeloom {

// Calls of operator new so far in a process that links this library, which replaces it.
int64_t AllocationCount();

}  // namespace pipeloom

#endif  // TESTS_KERNELS_ALLOCATION_COUNT_H_
