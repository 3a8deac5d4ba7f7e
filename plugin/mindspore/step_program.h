#ifndef PLUGIN_MINDSPORE_STEP_PROGRAM_H_
#define PLUGIN_MINDSPORE_STEP_PROGRAM_H_

#include <map>
#include <memory>
#include <vector>

#include "base/base_ref.h"
#include "plugin/mindspore/import_graph.h"
#include "plugin/mindspore/rank_world.h"

namespace pipeloom::ms {

struct DestroyProgram {
  void operator()(pipeloom_program* program) const { pipeloom_program_destroy(program); }
};

// A graph of MindSpore's, compiled and loaded on this process's rank or on all ranks that are its threads.
class StepProgram {
 public:
  // Called with Python's lock held, and lets it go while it waits for other ranks. Refused with Pipeloom's text.
  StepProgram(const host::FuncGraphPtr& graph, const Options& options);

  // One step. `inputs`: the tensors of the graph's parameters, in order; those of the network's own are bound, so that
  // a step reads and writes their memory. Returns what the graph returns. Called as above.
  host::BaseRef Run(const host::VectorRef& inputs);

 private:
  // A parameter of the network on one rank.
  struct Binding {
    size_t place;  // among the graph's parameters
    int rank;
    void* bound;               // the memory that it was last bound to
    std::vector<char> memory;  // of a further rank of this process, which has a copy of its own
  };

  void Load(const Options& options);
  void NoteBindings(const host::FuncGraphPtr& graph);
  void Bind(const host::VectorRef& inputs);
  host::BaseRef Returned(const Result& result, const std::vector<host::tensor::TensorPtr>& outputs,
                         const host::VectorRef& inputs) const;

  ImportedStep step_;
  std::unique_ptr<pipeloom_program, DestroyProgram> program_;
  RankWorld* world_ = nullptr;
  int loaded_ = -1;
  std::vector<Binding> bindings_;
};

}  // namespace pipeloom::ms

#endif  // PLUGIN_MINDSPORE_STEP_PROGRAM_H_
