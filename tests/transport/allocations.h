#ifndef TESTS_TRANSPORT_ALLOCATIONS_H_
#define TESTS_TRANSPORT_ALLOCATIONS_H_

#include <cstdint>

namespace pipeloom {

// How often the calling thread has called operator new, which allocations.cc replaces in the program that links it.
int64_t AllocationsOfThisThread();

}  // namespace pipeloom

#endif  // TESTS_TRANSPORT_ALLOCATIONS_H_
