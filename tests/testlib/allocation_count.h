#ifndef TESTS_TESTLIB_ALLOCATION_COUNT_H_
#define TESTS_TESTLIB_ALLOCATION_COUNT_H_

#include <cstdint>

namespace pipeloom {

// Calls of operator new so far in a process that links this library (which replaces it), by any thread and by the
// calling one. Calls that oneDNN's own code makes are left out: each of its primitives allocates a few times a run,
// whatever its caller does.
int64_t AllocationCount();
int64_t AllocationsOfThisThread();

}  // namespace pipeloom

#endif  // TESTS_TESTLIB_ALLOCATION_COUNT_H_
