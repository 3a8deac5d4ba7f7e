#include "plugin/mindspore/rank_world.h"

#include <memory>
#include <numeric>

#include "plugin/mindspore/graph_writer.h"

namespace pipeloom::ms {
namespace {

// Of the process: MindSpore makes one backend, and a launcher one rank of each process.
pipeloom_world* joined = nullptr;
std::unique_ptr<RankWorld> current;

}  // namespace

void RankWorld::Join(int64_t deadline_ms, int* rank, int* size) {
  int has_processes = 0;
  if (joined == nullptr) Check(pipeloom_world_join("auto", deadline_ms, &joined));
  Check(pipeloom_world_info(joined, rank, size, &has_processes));
}

RankWorld& RankWorld::Of(const Options& options) {
  if (current == nullptr) current.reset(new RankWorld(options));
  if (current->stages_ != options.stages) {
    throw Refused("this process runs " + std::to_string(current->stages_) +
                  " stages already, and cannot run a graph of " + std::to_string(options.stages) +
                  "; start another process for it");
  }
  return *current;
}

RankWorld::RankWorld(const Options& options) : stages_(options.stages) {
  int rank = 0;
  int size = 1;
  Join(options.deadline_ms, &rank, &size);
  pipeloom_session_options session;
  pipeloom_session_options_init(&session);
  session.deadline_ms = options.deadline_ms;
  session.output_broadcast = options.output_broadcast ? 1 : 0;
  if (size == 1) {
    Check(pipeloom_session_create(stages_, &session, &session_));
    local_ranks_.resize(static_cast<size_t>(stages_));
    std::iota(local_ranks_.begin(), local_ranks_.end(), 0);
    return;
  }
  if (size > stages_ && size % stages_ == 0) {
    throw Refused("the launcher has started " + std::to_string(size) + " processes for " + std::to_string(stages_) +
                  " stages; data-parallel ranks are not there yet, so start one process a stage (pipeloom-run -n " +
                  std::to_string(stages_) + ")");
  }
  if (size != stages_) {
    throw Refused("the launcher has started " + std::to_string(size) + " processes, but the pipeline has " +
                  std::to_string(stages_) + " stages; start one process a stage (pipeloom-run -n " +
                  std::to_string(stages_) + ")");
  }
  Check(pipeloom_session_create_for_rank(joined, &session, &session_));
  local_ranks_ = {rank};
}

void RankWorld::NoteParameter(const std::string& name, const Type& type, const host::tensor::TensorPtr& local) {
  Parameter& parameter = parameters_[name];
  parameter.type = type;
  if (local != nullptr) parameter.local = local;
}

int RankWorld::Owns(const std::string& parameter) {
  if (current == nullptr) return -1;
  const auto known = current->parameters_.find(parameter);
  if (known == current->parameters_.end()) return -1;
  return known->second.local != nullptr ? 1 : 0;
}

void RankWorld::Gather(const std::string& parameter, void* data, int64_t bytes, int to_rank) {
  if (current == nullptr) throw Refused("no step is built yet, so every rank still has all parameters");
  const auto known = current->parameters_.find(parameter);
  if (known == current->parameters_.end()) throw Refused("no step uses a parameter of the name " + parameter);
  const Type& type = known->second.type;
  if (bytes != type.bytes()) {
    throw Refused("parameter " + parameter + " is " + type.ToString() + ", which are " + std::to_string(type.bytes()) +
                  " bytes, not " + std::to_string(bytes));
  }
  int rank = 0;
  Check(pipeloom_session_rank(current->session_, &rank));
  // Before the first step nothing has bound it yet.
  if (const host::tensor::TensorPtr& local = known->second.local;
      local != nullptr && local->device_address() != nullptr) {
    const pipeloom_tensor own = {type.View(), local->data_c()};
    Check(pipeloom_session_bind_parameter(current->session_, rank, parameter.c_str(), &own));
  }
  std::vector<char> unwanted(to_rank >= 0 && to_rank != rank ? static_cast<size_t>(bytes) : 0);
  const pipeloom_tensor value = {type.View(), unwanted.empty() ? data : unwanted.data()};
  Check(pipeloom_session_read_parameter(current->session_, parameter.c_str(), &value));
}

void RankWorld::Refuse(const std::string& text) const {
  pipeloom_session_refuse(session_, PIPELOOM_INVALID_ARGUMENT, text.c_str());
}

void RankWorld::End(const char* failure) {
  if (current != nullptr) {
    if (failure != nullptr) pipeloom_session_fail(current->session_, PIPELOOM_ABORTED, failure);
    pipeloom_session_destroy(current->session_);
    current.reset();
  }
  if (joined == nullptr) return;
  pipeloom_world* world = joined;
  joined = nullptr;
  Check(pipeloom_world_end(world, failure));
}

}  // namespace pipeloom::ms
