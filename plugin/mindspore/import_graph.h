#ifndef PLUGIN_MINDSPORE_IMPORT_GRAPH_H_
#define PLUGIN_MINDSPORE_IMPORT_GRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "plugin/c_api/pipeloom.h"
#include "plugin/mindspore/anf.h"
#include "plugin/mindspore/item.h"
#include "plugin/mindspore/options.h"

namespace pipeloom::ms {

struct DestroyModule {
  void operator()(pipeloom_module* module) const { pipeloom_module_destroy(module); }
};

// A leaf or a tuple of what a call of the graph returns.
struct Result {
  bool is_tuple = false;
  std::vector<Result> elements;
  // Of a leaf, one of:
  int output = -1;        // an output of the step
  std::string parameter;  // a parameter, as it is after the step
  host::ValuePtr constant;
};

// A step of MindSpore's as a module of Pipeloom, and how arguments and results belong to it.
struct ImportedStep {
  std::unique_ptr<pipeloom_module, DestroyModule> module;
  std::vector<size_t> inputs;  // by input of the step: the place among the graph's parameters
  // By the graph's parameters: the name of a network's parameter, "" for an argument of the call.
  std::vector<std::string> parameters;
  std::vector<Type> parameter_types;  // beside `parameters`
  Result result;
};

// Refused, naming node and scope, where the graph has what Pipeloom cannot run.
ImportedStep ImportGraph(const host::FuncGraphPtr& graph, const Options& options);

}  // namespace pipeloom::ms

#endif  // PLUGIN_MINDSPORE_IMPORT_GRAPH_H_
