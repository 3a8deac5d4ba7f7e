#ifndef PLUGIN_RUNTIME_RANK_SESSION_H_
#define PLUGIN_RUNTIME_RANK_SESSION_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/registry/kernel_registry.h"
#include "plugin/runtime/agreement.h"
#include "plugin/runtime/bulk.h"
#include "plugin/runtime/executor.h"
#include "plugin/runtime/parameter_store.h"
#include "plugin/runtime/session.h"
#include "plugin/runtime/session_checks.h"

namespace pipeloom {

// One rank of a world whose other ranks are programs of their own, which make the same calls: see
// Session::CreateForRank.
class RankSession : public Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Create(std::unique_ptr<Transport> transport,
                                                         const SessionOptions& options);
  ~RankSession() override;

  RankId rank() const override { return transport_->rank(); }
  int ranks() const override { return transport_->size(); }
  absl::StatusOr<int> Load(const CompiledProgram& program) override;
  std::vector<TensorType> OutputTypes(int program) const override { return Program(program).written; }
  absl::Status Run(int program, absl::Span<const TensorView> inputs, absl::Span<const TensorView> outputs) override;
  std::vector<std::vector<ActionTime>> Times(int program) const override;
  absl::Status WriteParameter(const std::string& name, const TensorView& value) override;
  absl::StatusOr<Tensor> ReadParameter(const std::string& name) override;
  absl::StatusOr<std::vector<Tensor>> ReadCopies(const std::string& name) override;
  absl::StatusOr<std::string> OnRankZero(absl::string_view doing,
                                         const std::function<absl::StatusOr<std::string>()>& work) override;
  absl::Status BindParameter(RankId rank, const std::string& name, const TensorView& memory) override;
  void Abandon(const absl::Status& error) override;
  absl::Status Refuse(const absl::Status& error) override;

 private:
  struct Parameter {
    TensorType type;
    std::vector<RankId> holders;  // in order; never empty
  };
  struct Loaded {
    std::unique_ptr<Executor> executor;
    Call call;  // what a step of it begins with
    std::vector<TensorType> inputs;
    std::vector<TensorType> outputs;  // of the whole batch
    std::vector<RankId> owners;       // of the outputs; rank 0 for scalars, which all ranks have
    std::vector<TensorType> written;  // by Run of this rank
  };

  RankSession(std::unique_ptr<Transport> transport, Agreement agreement, Bulk bulk, const SessionOptions& options);

  const Loaded& Program(int program) const;
  absl::Status CheckUsable() const;
  // Ends the waits of all ranks with an error that arose here, and says where it was; OK stays OK.
  absl::Status Fail(const absl::Status& status, absl::string_view doing);
  absl::Status BindAndAgree(const CompiledProgram& program, Call call, std::unique_ptr<Executor>* executor);
  absl::Status CopyParameters(const CompiledProgram& program);
  void NoteParameters(const RankProgram& program);
  void NoteOutputs(const CompiledProgram& program, Loaded* loaded) const;
  absl::Status BroadcastOutputs(const Loaded& loaded, absl::Span<const TensorView> outputs);
  absl::StatusOr<const Parameter*> AgreeToRead(const std::string& name);
  absl::StatusOr<Tensor> CopyFrom(RankId holder, const std::string& name, const TensorType& type);

  const SessionOptions options_;
  std::unique_ptr<Transport> transport_;
  Agreement agreement_;
  Bulk bulk_;
  KernelRegistry registry_;
  ParameterStore parameters_;
  std::map<std::string, Parameter> world_parameters_;  // of all ranks, by name
  ParameterPlaces places_;
  std::vector<Loaded> programs_;
  int next_tag_;
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_RANK_SESSION_H_
