#include "plugin/runtime/session.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/transport/in_process.h"
#include "plugin/runtime/executor.h"
#include "plugin/runtime/parameter_store.h"
#include "plugin/runtime/rank_session.h"
#include "plugin/runtime/rank_threads.h"
#include "plugin/runtime/session_checks.h"

namespace pipeloom {
namespace {

// What one rank's thread owns.
struct Rank {
  KernelRegistry registry;
  ParameterStore parameters;
  std::unique_ptr<Transport> transport;
  std::vector<std::unique_ptr<Executor>> executors;  // by program
};

class ThreadSession : public Session {
 public:
  ThreadSession(int ranks, const SessionOptions& options) : options_(options), threads_(ranks) {
    std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(ranks);
    ranks_.resize(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      ranks_[static_cast<size_t>(rank)].transport = std::move(transports[static_cast<size_t>(rank)]);
      RegisterCpuKernels(ranks_[static_cast<size_t>(rank)].registry);
      ranks_[static_cast<size_t>(rank)].registry.SetFallback(options.host_kernels);
    }
    run_ = [this](int rank) {
      Executor& executor = *ranks_[static_cast<size_t>(rank)].executors[static_cast<size_t>(program_)];
      const ScopedComputeThreads threads(executor.threads());
      return executor.Run(inputs_, outputs_);
    };
  }

  RankId rank() const override { return RankId(0); }
  int ranks() const override { return static_cast<int>(ranks_.size()); }

  absl::StatusOr<int> Load(const CompiledProgram& program) override {
    if (program.ranks.size() != ranks_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the program is for ", program.ranks.size(), " ranks; the session has ", ranks_.size()));
    }
    RETURN_IF_ERROR(CheckUsable());
    const ChannelTag first_tag(next_tag_);
    const std::vector<NewCopy> new_copies = NewCopies(program);
    const std::vector<Holding> new_holdings = NewHoldings(program);
    const absl::Status loaded = FirstError(threads_.Run([&](int index) -> absl::Status {
      Rank& rank = ranks_[static_cast<size_t>(index)];
      const RankProgram& mine = program.ranks[static_cast<size_t>(index)];
      ASSIGN_OR_RETURN(
          std::unique_ptr<Executor> executor,
          Executor::Create(mine, rank.registry, rank.parameters, *rank.transport, first_tag, options_.deadline,
                           /*writes_scalars=*/index == 0));
      rank.executors.push_back(std::move(executor));
      return absl::OkStatus();
    }));
    int channels = 0;
    for (const RankProgram& rank : program.ranks) channels += static_cast<int>(rank.channels.size());
    next_tag_ += 1 + channels;  // also after an error: some ranks may have opened theirs
    if (!loaded.ok()) {
      for (Rank& rank : ranks_) rank.executors.resize(inputs_of_.size());
      // What they hold is no value yet, and the next program must not take it for one.
      for (const Holding& holding : new_holdings) ranks_[holding.rank].parameters.Erase(holding.name);
      return loaded;
    }
    for (const NewCopy& copy : new_copies) {
      const ParameterStore::Parameter& from = *ranks_[copy.from].parameters.Find(copy.name);
      const ParameterStore::Parameter& to = *ranks_[copy.to].parameters.Find(copy.name);
      std::memcpy(to.data, from.data, static_cast<size_t>(from.type.bytes()));
    }
    places_.Add(program);
    inputs_of_.push_back(program.inputs);
    outputs_of_.push_back(program.outputs);
    return static_cast<int>(inputs_of_.size()) - 1;
  }

  std::vector<TensorType> OutputTypes(int program) const override { return outputs_of_[static_cast<size_t>(program)]; }

  absl::Status Run(int program, absl::Span<const TensorView> inputs, absl::Span<const TensorView> outputs) override {
    PIPELOOM_CHECK(program >= 0 && program < static_cast<int>(inputs_of_.size()), "no program ", program);
    RETURN_IF_ERROR(CheckTensors("input", inputs, inputs_of_[static_cast<size_t>(program)]));
    RETURN_IF_ERROR(CheckTensors("output", outputs, outputs_of_[static_cast<size_t>(program)]));
    RETURN_IF_ERROR(CheckUsable());
    RETURN_IF_ERROR(places_.MayRun(program));
    program_ = program;
    inputs_ = inputs;
    outputs_ = outputs;
    return FirstError(threads_.Run(run_));
  }

  std::vector<std::vector<ActionTime>> Times(int program) const override {
    std::vector<std::vector<ActionTime>> times;
    for (const Rank& rank : ranks_) times.push_back(rank.executors[static_cast<size_t>(program)]->times());
    return times;
  }

  absl::Status WriteParameter(const std::string& name, const TensorView& value) override {
    bool found = false;
    for (Rank& rank : ranks_) {
      const ParameterStore::Parameter* parameter = rank.parameters.Find(name);
      if (parameter == nullptr) continue;
      RETURN_IF_ERROR(CheckParameterValue(name, parameter->type, value));
      std::memcpy(parameter->data, value.data, static_cast<size_t>(value.type.bytes()));
      found = true;
    }
    return found ? absl::OkStatus() : NoSuchParameterError(name);
  }

  absl::StatusOr<std::vector<Tensor>> ReadCopies(const std::string& name) override {
    std::vector<Tensor> copies;
    for (Rank& rank : ranks_) {
      const ParameterStore::Parameter* parameter = rank.parameters.Find(name);
      if (parameter == nullptr) continue;
      copies.emplace_back(parameter->type);
      std::memcpy(copies.back().data<char>(), parameter->data, static_cast<size_t>(parameter->type.bytes()));
    }
    if (copies.empty()) return NoSuchParameterError(name);
    return copies;
  }

  absl::Status BindParameter(RankId rank, const std::string& name, const TensorView& memory) override {
    if (rank < RankId(0) || rank >= RankId(ranks())) {
      return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " cannot be bound on rank ", rank.value(),
                                                     ", which the session of ", ranks(), " ranks has not"));
    }
    return ranks_[static_cast<size_t>(rank.value())].parameters.Bind(name, memory);
  }

  void Abandon(const absl::Status& error) override { ranks_[0].transport->Fail(error); }

 private:
  // A parameter that a program brings to rank `to`, and that rank `from` has from earlier ones.
  struct NewCopy {
    std::string name;
    size_t from;
    size_t to;
  };

  // A parameter that a program brings to a rank.
  struct Holding {
    std::string name;
    size_t rank;
  };

  std::vector<Holding> NewHoldings(const CompiledProgram& program) {
    std::vector<Holding> holdings;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (const ParameterRef& parameter : program.ranks[rank].parameters) {
        if (ranks_[rank].parameters.Find(parameter.name) == nullptr) holdings.push_back({parameter.name, rank});
      }
    }
    return holdings;
  }

  std::vector<NewCopy> NewCopies(const CompiledProgram& program) {
    std::vector<NewCopy> copies;
    for (const Holding& to : NewHoldings(program)) {
      const auto from = std::find_if(ranks_.begin(), ranks_.end(),
                                     [&](Rank& rank) { return rank.parameters.Find(to.name) != nullptr; });
      if (from != ranks_.end()) copies.push_back({to.name, static_cast<size_t>(from - ranks_.begin()), to.rank});
    }
    return copies;
  }

  absl::Status CheckUsable() const {
    const absl::Status failure = ranks_[0].transport->failure();
    if (failure.ok()) return failure;
    return absl::FailedPreconditionError(
        absl::StrCat("an earlier step failed, and this session can only be read; make a new one: ", failure.message()));
  }

  // What the first failing rank gave, so that all ranks' errors are one.
  absl::Status FirstError(absl::Span<const absl::Status> statuses) const {
    RETURN_IF_ERROR(ranks_[0].transport->failure());
    for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
    return absl::OkStatus();
  }

  const SessionOptions options_;
  std::vector<Rank> ranks_;
  RankThreads threads_;
  RankThreads::Job run_;
  ParameterPlaces places_;
  int next_tag_ = 0;
  std::vector<std::vector<TensorType>> inputs_of_;  // by program
  std::vector<std::vector<TensorType>> outputs_of_;
  // Of the step that runs.
  int program_ = 0;
  absl::Span<const TensorView> inputs_;
  absl::Span<const TensorView> outputs_;
};

absl::Status CheckDeadline(const SessionOptions& options) {
  if (options.deadline > std::chrono::milliseconds(0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the deadline is ", options.deadline.count(), " ms; give a positive one"));
}

}  // namespace

absl::StatusOr<Tensor> Session::ReadParameter(const std::string& name) {
  ASSIGN_OR_RETURN(std::vector<Tensor> copies, ReadCopies(name));
  return std::move(copies[0]);
}

absl::StatusOr<std::string> Session::OnRankZero(absl::string_view /*doing*/,
                                                const std::function<absl::StatusOr<std::string>()>& work) {
  return work();
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(int ranks, const SessionOptions& options) {
  if (ranks < 1) return absl::InvalidArgumentError(absl::StrCat("a session of ", ranks, " ranks; give 1 or more"));
  RETURN_IF_ERROR(CheckDeadline(options));
  try {
    return std::make_unique<ThreadSession>(ranks, options);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start a thread for each of ", ranks, " ranks: ",
                                                     error.what(), "; use fewer stages or allow more threads"));
  }
}

absl::StatusOr<std::unique_ptr<Session>> Session::CreateForRank(std::unique_ptr<Transport> transport,
                                                                const SessionOptions& options) {
  RETURN_IF_ERROR(CheckDeadline(options));
  return RankSession::Create(std::move(transport), options);
}

}  // namespace pipeloom
