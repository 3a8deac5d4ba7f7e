#ifndef PLUGIN_C_API_MODULE_H_
#define PLUGIN_C_API_MODULE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "passes/ir/module.h"
#include "plugin/c_api/pipeloom.h"

// NOLINTBEGIN(readability-identifier-naming): names of C.

struct pipeloom_module {
  pipeloom::Module module;
  bool compiled = false;  // its graphs are gone
  std::vector<std::unique_ptr<pipeloom_graph>> graphs;
  std::string text;
};

struct pipeloom_graph {
  pipeloom_module* module;
  pipeloom::Graph* graph;
  int64_t number;                        // in its module, from 1
  std::vector<pipeloom::Value*> values;  // by their number in a pipeloom_value
};

// NOLINTEND(readability-identifier-naming)

namespace pipeloom::c_api {

// InvalidArgument for a null pointer, FailedPrecondition once it was compiled.
absl::Status CheckModule(const pipeloom_module* module);

}  // namespace pipeloom::c_api

#endif  // PLUGIN_C_API_MODULE_H_
