#ifndef PLUGIN_MINDSPORE_RANK_WORLD_H_
#define PLUGIN_MINDSPORE_RANK_WORLD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plugin/c_api/pipeloom.h"
#include "plugin/mindspore/anf.h"
#include "plugin/mindspore/graph_writer.h"
#include "plugin/mindspore/options.h"

namespace pipeloom::ms {

// This process in its run, and its one session. Made with the first graph that is built, for the options of then.
class RankWorld {
 public:
  // Refused where a later graph wants another number of stages.
  static RankWorld& Of(const Options& options);
  // Joins the ranks that a launcher has started, where none has yet.
  static void Join(int64_t deadline_ms, int* rank, int* size);
  // Ends the session and the world; `failure` is null or why this rank ends early. Nothing where there is no world.
  static void End(const char* failure);

  // See pipeloom_mindspore_owns and pipeloom_mindspore_gather.
  static int Owns(const std::string& parameter);
  static void Gather(const std::string& parameter, void* data, int64_t bytes, int to_rank);

  pipeloom_session* session() const { return session_; }
  // The ranks whose memory is in this process.
  const std::vector<int>& local_ranks() const { return local_ranks_; }
  // A parameter of a program that is loaded, and MindSpore's tensor of it where a rank of this process uses it.
  void NoteParameter(const std::string& name, const Type& type, const host::tensor::TensorPtr& local);
  // Tells the other ranks what this one refuses in place of a load.
  void Refuse(const std::string& text) const;

 private:
  explicit RankWorld(const Options& options);

  pipeloom_session* session_ = nullptr;
  int stages_ = 1;
  std::vector<int> local_ranks_;
  struct Parameter {
    Type type;
    host::tensor::TensorPtr local;
  };
  std::map<std::string, Parameter> parameters_;
};

}  // namespace pipeloom::ms

#endif  // PLUGIN_MINDSPORE_RANK_WORLD_H_
