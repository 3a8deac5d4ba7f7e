#include "plugin/runtime/executor.h"

#include <cmath>
#include <cstring>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const RankProgram& program, const KernelRegistry& registry,
                                                           ParameterStore& parameters, Transport& transport,
                                                           ChannelTag first_tag, std::chrono::milliseconds deadline,
                                                           bool writes_scalars) {
  ASSIGN_OR_RETURN(Exchange exchange, Exchange::Open(transport, first_tag, static_cast<int>(program.scalars.size())));
  ASSIGN_OR_RETURN(std::unique_ptr<BoundProgram> bound,
                   BoundProgram::Bind(program, registry, parameters, transport, ChannelTag(first_tag.value() + 1)));
  return std::unique_ptr<Executor>(
      new Executor(program, transport, std::move(bound), std::move(exchange), deadline, writes_scalars));
}

Executor::Executor(const RankProgram& program, Transport& transport, std::unique_ptr<BoundProgram> bound,
                   Exchange exchange, std::chrono::milliseconds deadline, bool writes_scalars)
    : transport_(transport),
      bound_(std::move(bound)),
      exchange_(std::move(exchange)),
      deadline_(deadline),
      rank_(program.rank),
      micro_batches_(program.micro_batches),
      threads_(program.threads),
      trains_(program.trains),
      writes_scalars_(writes_scalars),
      scalars_(program.scalars) {
  for (const Action& action : program.actions) times_.push_back({action, {}, {}});
  for (size_t i = 0; i < program.chunks.size(); ++i) {
    const auto chunk = static_cast<size_t>(program.chunks[i].chunk.value());
    if (position_of_chunk_.size() <= chunk) position_of_chunk_.resize(chunk + 1, -1);
    position_of_chunk_[chunk] = static_cast<int>(i);
  }
}

absl::Status Executor::Run(absl::Span<const TensorView> inputs, absl::Span<const TensorView> outputs) {
  bound_->SetInputs(inputs);
  refused_ = false;
  absl::Status refusal;
  for (ActionTime& timed : times_) {
    current_ = &timed;
    running_ = nullptr;
    waits_for_ = nullptr;
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status status = DoGuarded(timed.action);
    timed.total += std::chrono::steady_clock::now() - begin;
    if (status.ok()) continue;
    if (refused_) {
      refusal = status;
      ReleaseStepChannels();
      break;
    }
    return Failed(timed.action, status);
  }
  ++step_;
  if (refused_) return refusal;
  WriteOutputs(outputs);
  return absl::OkStatus();
}

absl::Status Executor::Failed(const Action& action, const absl::Status& status) {
  std::string place = absl::StrCat("step ", step_, ", rank ", rank_.value(), ", ", ActionToString(action),
                                   running_ == nullptr ? "" : absl::StrCat(", ", running_->place));
  if (status != transport_.failure()) {
    const absl::Status own = Annotate(status, place);
    transport_.Fail(own);
    return own;
  }
  const ChannelSpec* channel = exchange_.failed_channel() != nullptr ? exchange_.failed_channel() : waits_for_;
  if (channel != nullptr) absl::StrAppend(&place, ", ", ChannelName(*channel));
  return Annotate(status, absl::StrCat(place, ": ended with another rank"));
}

// An exception is an error like any other: if it did not poison the transport, the other ranks would wait in vain.
absl::Status Executor::DoGuarded(const Action& action) {
  try {
    return Do(action);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("exception: ", error.what()));
  }
}

absl::Status Executor::Do(const Action& action) {
  const int micro_batch = action.micro_batch.value();
  switch (action.kind) {
    case ActionKind::kReduce:
      RETURN_IF_ERROR(RunLaunches(bound_->first_sends, 0));
      for (size_t i = 0; i < bound_->chunks.size(); ++i)
        RETURN_IF_ERROR(RunPart(static_cast<int>(i), Part::kReduce, 0));
      return absl::OkStatus();
    case ActionKind::kStep:
      for (size_t i = 0; i < bound_->chunks.size(); ++i)
        RETURN_IF_ERROR(RunPart(static_cast<int>(i), Part::kUpdate, 0));
      ReleaseStepChannels();
      return absl::OkStatus();
    case ActionKind::kExchange:
      return RunExchange();
    default:
      break;
  }
  const int chunk = ChunkPosition(action.chunk);
  switch (action.kind) {
    case ActionKind::kForward:
      return RunMicroBatch(chunk, Part::kForward, micro_batch);
    case ActionKind::kBackwardInput:
      return RunMicroBatch(chunk, Part::kBackwardInput, micro_batch);
    case ActionKind::kBackwardWeight:
      return RunMicroBatch(chunk, Part::kBackwardWeight, micro_batch);
    case ActionKind::kBackward:
      RETURN_IF_ERROR(RunMicroBatch(chunk, Part::kBackwardInput, micro_batch));
      return RunMicroBatch(chunk, Part::kBackwardWeight, micro_batch);
    case ActionKind::kSendForward:
      return Send(chunk, Part::kForward, micro_batch);
    case ActionKind::kSendBackward:
      return Send(chunk, Part::kBackwardInput, micro_batch);
    case ActionKind::kReceiveForward:
      return Receive(chunk, Part::kForward, micro_batch);
    case ActionKind::kReceiveBackward:
      return Receive(chunk, Part::kBackwardInput, micro_batch);
    default:
      return absl::InternalError(absl::StrCat("no handler for action ", ActionToString(action)));
  }
}

absl::Status Executor::RunMicroBatch(int chunk, Part part, int micro_batch) {
  RETURN_IF_ERROR(AcquireDirect(chunk, part, micro_batch));
  RETURN_IF_ERROR(RunPart(chunk, part, micro_batch));
  // The SEND that comes next may still copy from a slot (of a value that goes on as a view).
  if (ChannelsOf(chunk, part).sends.empty()) ReleaseAfter(chunk, part, micro_batch);
  return absl::OkStatus();
}

absl::Status Executor::RunPart(int chunk, Part part, int micro_batch) {
  return RunLaunches(bound_->chunks[static_cast<size_t>(chunk)][static_cast<size_t>(part)], micro_batch);
}

absl::Status Executor::RunLaunches(std::vector<BoundLaunch>& launches, int micro_batch) {
  const auto begin = std::chrono::steady_clock::now();
  for (BoundLaunch& launch : launches) {
    running_ = &launch;
    RETURN_IF_ERROR(RunLaunch(launch, micro_batch));
    transport_.Progress();
  }
  running_ = nullptr;
  current_->busy += std::chrono::steady_clock::now() - begin;
  return absl::OkStatus();
}

absl::Status Executor::RunLaunch(BoundLaunch& launch, int micro_batch) {
  if (launch.kind == Launch::Kind::kSend || launch.kind == Launch::Kind::kReceive) return RunStepMessage(launch);
  if (!EndsGroup(micro_batch, launch.group)) return absl::OkStatus();
  const int first = micro_batch - micro_batch % launch.group;
  const int group = first / launch.group;
  void** operands = bound_->kernel_operands.data();
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const BoundOperand& operand = launch.operands[i];
    operands[i] = operand.Address(operand.per_group ? group : first);
  }
  switch (launch.kind) {
    case Launch::Kind::kMergeConcat:
      std::memcpy(static_cast<char*>(operands[1]) + launch.bytes * micro_batch, operands[0],
                  static_cast<size_t>(launch.bytes));
      return absl::OkStatus();
    case Launch::Kind::kAccumulate:
      if (group == 0) {
        if (operands[0] != operands[1]) std::memcpy(operands[1], operands[0], static_cast<size_t>(launch.bytes));
        return absl::OkStatus();
      }
      break;
    case Launch::Kind::kMicroBatch:
      *static_cast<int64_t*>(operands[0]) = micro_batch;
      return absl::OkStatus();
    default:
      break;
  }
  Kernel& kernel = micro_batch - first + 1 == launch.group || launch.tail == nullptr ? *launch.kernel : *launch.tail;
  return kernel.Run(absl::MakeConstSpan(operands, launch.operands.size()), bound_->scratch.data());
}

absl::Status Executor::RunStepMessage(BoundLaunch& launch) {
  BoundChannel& channel = bound_->channels[static_cast<size_t>(launch.channel)];
  if (launch.kind == Launch::Kind::kReceive) return Await(channel, step_);
  RETURN_IF_ERROR(Acquire(channel, step_));
  std::memcpy(channel.send->Slot(step_), channel.copied_from.Address(0), static_cast<size_t>(channel.info.spec.bytes));
  channel.send->Send(step_);
  return absl::OkStatus();
}

absl::Status Executor::Acquire(BoundChannel& channel, int64_t message) {
  waits_for_ = &channel.info.spec;
  return channel.send->Acquire(message, DeadlineNow());
}

absl::Status Executor::Await(BoundChannel& channel, int64_t message) {
  waits_for_ = &channel.info.spec;
  return channel.receive->Receive(message, DeadlineNow());
}

absl::Status Executor::AcquireDirect(int chunk, Part part, int micro_batch) {
  for (const int index : ChannelsOf(chunk, part).sends) {
    BoundChannel& channel = bound_->channels[static_cast<size_t>(index)];
    if (!channel.info.direct) continue;
    RETURN_IF_ERROR(Acquire(channel, Message(micro_batch)));
  }
  return absl::OkStatus();
}

absl::Status Executor::Send(int chunk, Part part, int micro_batch) {
  const int64_t message = Message(micro_batch);
  for (const int index : ChannelsOf(chunk, part).sends) {
    BoundChannel& channel = bound_->channels[static_cast<size_t>(index)];
    if (!channel.info.direct) {
      RETURN_IF_ERROR(Acquire(channel, message));
      std::memcpy(channel.send->Slot(message), channel.copied_from.Address(micro_batch),
                  static_cast<size_t>(channel.info.spec.bytes));
    }
    channel.send->Send(message);
  }
  ReleaseAfter(chunk, part, micro_batch);
  return absl::OkStatus();
}

absl::Status Executor::Receive(int chunk, Part part, int micro_batch) {
  for (const int index : ChannelsOf(chunk, part).receives) {
    RETURN_IF_ERROR(Await(bound_->channels[static_cast<size_t>(index)], Message(micro_batch)));
  }
  return absl::OkStatus();
}

void Executor::ReleaseAfter(int chunk, Part part, int micro_batch) {
  for (const int index : ChannelsOf(chunk, part).released) {
    const BoundChannel& channel = bound_->channels[static_cast<size_t>(index)];
    if (EndsGroup(micro_batch, channel.info.group)) channel.receive->Release(Message(micro_batch));
  }
}

void Executor::ReleaseStepChannels() {
  for (BoundChannel& channel : bound_->channels) {
    if (!channel.info.sends && channel.info.released_after == Part::kUpdate) channel.receive->Release(step_);
  }
}

absl::Status Executor::RunExchange() {
  for (size_t i = 0; i < scalars_.size(); ++i) {
    for (size_t j = 0; j < bound_->outputs.size(); ++j) {
      if (bound_->outputs[j].index != scalars_[i].index) continue;
      std::memcpy(&bound_->scalars[i], bound_->output_operands[j].Address(0), sizeof(float));
    }
  }
  RETURN_IF_ERROR(exchange_.Run(step_, bound_->scalar_owners, &bound_->scalars, DeadlineNow()));
  const absl::Status finite = CheckScalars();
  refused_ = !finite.ok();
  return finite;
}

absl::Status Executor::CheckScalars() const {
  if (!trains_) return absl::OkStatus();
  for (const float scalar : bound_->scalars) {
    if (std::isfinite(scalar)) continue;
    return absl::OutOfRangeError(
        absl::StrCat("the loss of step ", step_, " is ", scalar,
                     "; no parameter was changed; lower the learning rate or look at the data"));
  }
  return absl::OkStatus();
}

void Executor::WriteOutputs(absl::Span<const TensorView> outputs) const {
  for (size_t i = 0; i < bound_->outputs.size(); ++i) {
    const OutputRef& output = bound_->outputs[i];
    if (output.type.rank() == 0 && output.type.dtype == DType::kFloat32) continue;
    std::memcpy(outputs[static_cast<size_t>(output.index)].data, bound_->output_operands[i].Address(0),
                static_cast<size_t>(output.type.bytes()));
  }
  if (!writes_scalars_) return;
  for (size_t i = 0; i < scalars_.size(); ++i) {
    std::memcpy(outputs[static_cast<size_t>(scalars_[i].index)].data, &bound_->scalars[i], sizeof(float));
  }
}

}  // namespace pipeloom
