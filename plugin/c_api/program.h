#ifndef PLUGIN_C_API_PROGRAM_H_
#define PLUGIN_C_API_PROGRAM_H_

#include <vector>

#include "plugin/c_api/pipeloom.h"
#include "plugin/runtime/compile.h"

// NOLINTNEXTLINE(readability-identifier-naming): a name of C.
struct pipeloom_program {
  explicit pipeloom_program(pipeloom::CompiledProgram compiled);

  const pipeloom::CompiledProgram program;
  // Point into `program`.
  std::vector<pipeloom_type> inputs;
  std::vector<pipeloom_type> outputs;
  std::vector<std::vector<pipeloom_parameter>> parameters;  // by rank
};

#endif  // PLUGIN_C_API_PROGRAM_H_
