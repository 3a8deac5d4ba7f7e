#ifndef TESTS_TESTLIB_ALLOCATION_COUNT_H_
#define TESTS_TESTLIB_ALLOCATION_COUNT_H_

#include <cstdint>

namespace pipeloom {

// Calls of operator new so far, by any thread of a process that links this library (which replaces it). Calls that
// oneDNN's own code makes are left out: each of its primitives allocates a few times a run, whatever its caller does.
int64_t AllocationCount();

}  // namespace pipeloom

#endif  // TESTS_TESTLIB_ALLOCATION_COUNT_H_
