/* What a C program needs in place of a test framework: the first failure says where, and ends it. */
#ifndef TESTS_C_API_CHECK_H_
#define TESTS_C_API_CHECK_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/c_api/pipeloom.h"

#define FAIL(...)                                   \
  do {                                              \
    fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
    fprintf(stderr, __VA_ARGS__);                   \
    fprintf(stderr, "\n");                          \
    exit(1);                                        \
  } while (0)

#define CHECK(condition)                                    \
  do {                                                      \
    if (!(condition)) FAIL("%s does not hold", #condition); \
  } while (0)

/* A call that works. */
#define OK(call)                                                                                \
  do {                                                                                          \
    const int ok_code = (call);                                                                 \
    if (ok_code != PIPELOOM_OK) FAIL("%s: code %d: %s", #call, ok_code, pipeloom_last_error()); \
  } while (0)

/* A call that is refused with this code and exactly this text. */
#define REFUSED(call, code, text)                                                                 \
  do {                                                                                            \
    const int refused_code = (call);                                                              \
    if (refused_code != (code) || strcmp(pipeloom_last_error(), (text)) != 0) {                   \
      FAIL("%s: code %d, not %d: `%s`", #call, refused_code, (int)(code), pipeloom_last_error()); \
    }                                                                                             \
  } while (0)

#define SAME_TEXT(given, wanted)                                                                   \
  do {                                                                                             \
    if (strcmp((given), (wanted)) != 0) FAIL("%s is\n%s\nand not\n%s", #given, (given), (wanted)); \
  } while (0)

#endif /* TESTS_C_API_CHECK_H_ */
