#include "plugin/runtime/rank_session.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/digest.h"
#include "kernels/base/status_macros.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/transport/stop_signal.h"
#include "plugin/runtime/session_checks.h"

namespace pipeloom {
namespace {

constexpr ChannelTag kAgreementTag(0);
constexpr ChannelTag kBulkTag(1);
constexpr int kFirstProgramTag = 2;

bool IsScalar(const TensorType& type) { return type == TensorType{DType::kFloat32, {}}; }

TensorType OfSizeZero(TensorType type) {
  if (type.shape.empty()) type.shape.push_back(0);
  type.shape[0] = 0;
  return type;
}

std::string InputsToString(const std::vector<TensorType>& inputs) {
  return absl::StrJoin(inputs, ", ", [](std::string* out, const TensorType& type) { out->append(type.ToString()); });
}

std::string ConfigurationToString(const SessionOptions& options) {
  // Kernels of another instruction set give other bits.
  std::string text = absl::StrCat("instructions of the CPU=", CpuInstructions(), "\n");
  for (const auto& [name, value] : options.configuration) absl::StrAppend(&text, name, "=", value, "\n");
  return text;
}

std::string ProgramToString(const CompiledProgram& program) {
  std::string text =
      absl::StrCat("inputs (", InputsToString(program.inputs), ")\noutputs (", InputsToString(program.outputs), ")\n");
  for (const RankProgram& rank : program.ranks) text += RankProgramToString(rank);
  return text;
}

// An exception would leave the other ranks waiting.
absl::StatusOr<std::string> DoGuarded(const std::function<absl::StatusOr<std::string>()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("exception: ", error.what()));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> RankSession::Create(std::unique_ptr<Transport> transport,
                                                             const SessionOptions& options) {
  absl::StatusOr<Agreement> agreement = Agreement::Open(*transport, kAgreementTag, options.deadline);
  absl::StatusOr<Bulk> bulk = Bulk::Open(*transport, kBulkTag, options.deadline);
  for (const absl::Status& opened : {agreement.status(), bulk.status()}) {
    if (opened.ok()) continue;
    const absl::Status own = Annotate(opened, absl::StrCat("rank ", transport->rank().value(), ", the start"));
    transport->Fail(own);
    return own;
  }
  auto session = std::unique_ptr<RankSession>(
      new RankSession(std::move(transport), *std::move(agreement), *std::move(bulk), options));
  RETURN_IF_ERROR(session->Fail(
      session->agreement_.OnText({}, ConfigurationToString(options), "give all ranks the same flags", session->bulk_),
      "the start"));
  return session;
}

RankSession::RankSession(std::unique_ptr<Transport> transport, Agreement agreement, Bulk bulk,
                         const SessionOptions& options)
    : options_(options),
      transport_(std::move(transport)),
      agreement_(std::move(agreement)),
      bulk_(std::move(bulk)),
      next_tag_(kFirstProgramTag) {
  RegisterCpuKernels(registry_);
  registry_.SetFallback(options_.host_kernels);
}

RankSession::~RankSession() {
  if (transport_->failure().ok()) agreement_.End();
}

const RankSession::Loaded& RankSession::Program(int program) const {
  PIPELOOM_CHECK(program >= 0 && program < static_cast<int>(programs_.size()), "no program ", program);
  return programs_[static_cast<size_t>(program)];
}

absl::Status RankSession::CheckUsable() const {
  const absl::Status failure = transport_->failure();
  if (failure.ok()) return failure;
  return absl::FailedPreconditionError(
      absl::StrCat("an earlier call failed, and this session cannot go on; make a new one: ", failure.message()));
}

absl::Status RankSession::Fail(const absl::Status& status, absl::string_view doing) {
  if (status.ok()) return status;
  const std::string place = absl::StrCat("rank ", rank().value(), ", ", doing);
  if (status == transport_->failure()) {
    const ChannelSpec* channel =
        agreement_.failed_channel() != nullptr ? agreement_.failed_channel() : bulk_.failed_channel();
    return Annotate(status, absl::StrCat(place, channel == nullptr ? "" : absl::StrCat(", ", ChannelName(*channel)),
                                         ": ended with another rank"));
  }
  const absl::Status own = Annotate(status, place);
  transport_->Fail(own);
  return own;
}

absl::StatusOr<int> RankSession::Load(const CompiledProgram& program) {
  RETURN_IF_ERROR(CheckUsable());
  const int number = static_cast<int>(programs_.size());
  Call call;
  call.kind = Call::Kind::kLoad;
  call.program = number;
  call.SetText(InputsToString(program.inputs));
  const std::string doing = absl::StrCat("loading program ", number);
  RETURN_IF_ERROR(
      Fail(agreement_.OnText(call, ProgramToString(program),
                             "the ranks compiled different programs; give them the same network and flags", bulk_),
           doing));
  // From here on all ranks have the same program, so that what is refused by its text is refused by all.
  if (static_cast<int>(program.ranks.size()) != transport_->size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the program is for ", program.ranks.size(), " ranks; the session has ", transport_->size()));
  }
  std::unique_ptr<Executor> executor;
  RETURN_IF_ERROR(BindAndAgree(program, call, &executor));
  RETURN_IF_ERROR(Fail(CopyParameters(program), doing));
  for (const RankProgram& rank : program.ranks) NoteParameters(rank);
  places_.Add(program);
  Loaded loaded;
  loaded.executor = std::move(executor);
  loaded.call = call;
  loaded.call.kind = Call::Kind::kStep;
  loaded.inputs = program.inputs;
  NoteOutputs(program, &loaded);
  programs_.push_back(std::move(loaded));
  return number;
}

// Binds this rank's share. An error on one rank is one of all.
absl::Status RankSession::BindAndAgree(const CompiledProgram& program, Call call, std::unique_ptr<Executor>* executor) {
  absl::StatusOr<std::unique_ptr<Executor>> bound =
      Executor::Create(program.ranks[static_cast<size_t>(rank().value())], registry_, parameters_, *transport_,
                       ChannelTag(next_tag_), options_.deadline, /*writes_scalars=*/true);
  next_tag_ += 1;
  for (const RankProgram& rank : program.ranks) next_tag_ += static_cast<int>(rank.channels.size());
  call.kind = bound.ok() ? Call::Kind::kBound : Call::Kind::kRefused;
  if (!bound.ok()) call.SetText(bound.status().message());
  const absl::Status all = agreement_.On(call);
  if (!all.ok()) return Fail(bound.ok() ? all : bound.status(), "loading a program");
  RETURN_IF_ERROR(bound.status());
  *executor = *std::move(bound);
  return absl::OkStatus();
}

// What a rank holds for the first time gets the value that other ranks have.
absl::Status RankSession::CopyParameters(const CompiledProgram& program) {
  for (const RankProgram& to : program.ranks) {
    for (const ParameterRef& parameter : to.parameters) {
      const auto known = world_parameters_.find(parameter.name);
      if (known == world_parameters_.end()) continue;
      const std::vector<RankId>& holders = known->second.holders;
      if (std::find(holders.begin(), holders.end(), to.rank) != holders.end()) continue;
      const ParameterStore::Parameter* mine = parameters_.Find(parameter.name);
      if (rank() == holders[0]) RETURN_IF_ERROR(bulk_.Send(to.rank, mine->data, mine->type.bytes()));
      if (rank() != to.rank) continue;
      Tensor unwanted;  // where the host has given the value, which the sender does not know
      if (mine->bound) unwanted = Tensor(mine->type);
      RETURN_IF_ERROR(bulk_.Receive(holders[0], mine->bound ? unwanted.data<char>() : mine->data, mine->type.bytes()));
    }
  }
  return absl::OkStatus();
}

void RankSession::NoteParameters(const RankProgram& program) {
  for (const ParameterRef& parameter : program.parameters) {
    Parameter& known = world_parameters_[parameter.name];
    known.type = parameter.type;
    const auto at = std::lower_bound(known.holders.begin(), known.holders.end(), program.rank);
    if (at == known.holders.end() || *at != program.rank) known.holders.insert(at, program.rank);
  }
}

void RankSession::NoteOutputs(const CompiledProgram& program, Loaded* loaded) const {
  loaded->outputs = program.outputs;
  loaded->owners.resize(program.outputs.size());
  for (const RankProgram& rank : program.ranks) {
    for (const OutputRef& output : rank.outputs) {
      if (!IsScalar(output.type)) loaded->owners[static_cast<size_t>(output.index)] = rank.rank;
    }
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const TensorType& type = program.outputs[i];
    const bool has_it = IsScalar(type) || options_.output_broadcast || loaded->owners[i] == rank();
    loaded->written.push_back(has_it ? type : OfSizeZero(type));
  }
}

absl::Status RankSession::Run(int program, absl::Span<const TensorView> inputs, absl::Span<const TensorView> outputs) {
  RETURN_IF_ERROR(CheckUsable());
  const Loaded& loaded = Program(program);
  RETURN_IF_ERROR(places_.MayRun(program));  // the same on all ranks
  // A rank that never has to wait would not hear of it otherwise.
  if (StopRequested()) {
    return Fail(absl::AbortedError("SIGTERM ended this process"),
                absl::StrCat("the beginning of step ", loaded.executor->step()));
  }
  absl::Status refusal = CheckTensors("input", inputs, loaded.inputs);
  if (refusal.ok()) refusal = CheckTensors("output", outputs, loaded.written);
  Call call = loaded.call;
  call.step = loaded.executor->step();
  if (!refusal.ok()) {
    call.kind = Call::Kind::kRefused;
    call.SetText(refusal.message());
  }
  const absl::Status agreed = agreement_.On(call);
  if (!agreed.ok()) return Fail(agreed, absl::StrCat("the beginning of step ", call.step));
  RETURN_IF_ERROR(refusal);
  const ScopedComputeThreads threads(loaded.executor->threads());
  RETURN_IF_ERROR(loaded.executor->Run(inputs, outputs));
  return options_.output_broadcast ? Fail(BroadcastOutputs(loaded, outputs), "the outputs of a step")
                                   : absl::OkStatus();
}

absl::Status RankSession::BroadcastOutputs(const Loaded& loaded, absl::Span<const TensorView> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (IsScalar(loaded.outputs[i])) continue;
    RETURN_IF_ERROR(bulk_.Broadcast(loaded.owners[i], outputs[i].data, loaded.outputs[i].bytes()));
  }
  return absl::OkStatus();
}

std::vector<std::vector<ActionTime>> RankSession::Times(int program) const {
  std::vector<std::vector<ActionTime>> times(static_cast<size_t>(transport_->size()));
  times[static_cast<size_t>(rank().value())] = Program(program).executor->times();
  return times;
}

absl::Status RankSession::WriteParameter(const std::string& name, const TensorView& value) {
  const auto known = world_parameters_.find(name);
  if (known == world_parameters_.end()) return NoSuchParameterError(name);
  RETURN_IF_ERROR(CheckParameterValue(name, known->second.type, value));
  if (const ParameterStore::Parameter* mine = parameters_.Find(name); mine != nullptr) {
    std::memcpy(mine->data, value.data, static_cast<size_t>(value.type.bytes()));
  }
  return absl::OkStatus();
}

absl::StatusOr<const RankSession::Parameter*> RankSession::AgreeToRead(const std::string& name) {
  RETURN_IF_ERROR(CheckUsable());
  Call call;
  call.kind = Call::Kind::kReadParameter;
  call.digest = Digest(name);
  call.SetText(name);
  RETURN_IF_ERROR(Fail(agreement_.On(call), absl::StrCat("reading parameter ", name)));
  const auto known = world_parameters_.find(name);
  if (known == world_parameters_.end()) return NoSuchParameterError(name);
  return &known->second;
}

absl::StatusOr<Tensor> RankSession::CopyFrom(RankId holder, const std::string& name, const TensorType& type) {
  Tensor copy(type);
  if (holder == rank()) {
    std::memcpy(copy.data<char>(), parameters_.Find(name)->data, static_cast<size_t>(type.bytes()));
  }
  RETURN_IF_ERROR(
      Fail(bulk_.Broadcast(holder, copy.data<char>(), type.bytes()), absl::StrCat("reading parameter ", name)));
  return copy;
}

absl::StatusOr<Tensor> RankSession::ReadParameter(const std::string& name) {
  ASSIGN_OR_RETURN(const Parameter* parameter, AgreeToRead(name));
  return CopyFrom(parameter->holders[0], name, parameter->type);
}

absl::StatusOr<std::vector<Tensor>> RankSession::ReadCopies(const std::string& name) {
  ASSIGN_OR_RETURN(const Parameter* parameter, AgreeToRead(name));
  std::vector<Tensor> copies;
  for (const RankId holder : parameter->holders) {
    ASSIGN_OR_RETURN(Tensor copy, CopyFrom(holder, name, parameter->type));
    copies.push_back(std::move(copy));
  }
  return copies;
}

absl::StatusOr<std::string> RankSession::OnRankZero(absl::string_view doing,
                                                    const std::function<absl::StatusOr<std::string>()>& work) {
  RETURN_IF_ERROR(CheckUsable());
  Call call;
  call.kind = Call::Kind::kOnRankZero;
  call.digest = Digest(doing);
  call.SetText(doing);
  RETURN_IF_ERROR(Fail(agreement_.On(call), doing));
  absl::StatusOr<std::string> result = rank() == RankId(0) ? DoGuarded(work) : std::string();
  std::string text = result.ok() ? *std::move(result) : std::string(result.status().message());
  int64_t header[2] = {static_cast<int64_t>(result.status().code()), static_cast<int64_t>(text.size())};
  RETURN_IF_ERROR(Fail(bulk_.Broadcast(RankId(0), header, sizeof(header)), doing));
  text.resize(static_cast<size_t>(header[1]));
  RETURN_IF_ERROR(Fail(bulk_.Broadcast(RankId(0), text.data(), header[1]), doing));
  if (header[0] != 0) return absl::Status(static_cast<absl::StatusCode>(header[0]), text);
  return text;
}

absl::Status RankSession::BindParameter(RankId rank, const std::string& name, const TensorView& memory) {
  if (rank == this->rank()) return parameters_.Bind(name, memory);
  return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " cannot be bound on rank ", rank.value(),
                                                 "; this is rank ", this->rank().value(), ", each binds its own"));
}

void RankSession::Abandon(const absl::Status& error) {
  transport_->Fail(Annotate(error, absl::StrCat("rank ", rank().value(), ", its host")));
}

absl::Status RankSession::Refuse(const absl::Status& error) {
  RETURN_IF_ERROR(CheckUsable());
  Call call;
  call.kind = Call::Kind::kRefused;
  call.digest = Digest(error.message());
  call.SetText(error.message());
  RETURN_IF_ERROR(Fail(agreement_.On(call), "before loading a program"));
  return error;
}

}  // namespace pipeloom
