#include "plugin/runtime/bound_program.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/elements.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

Tensor MakeConstant(const ConstantRef& constant) {
  Tensor tensor(constant.type);
  StoreElements(constant.elements, tensor.view());
  return tensor;
}

// Equal for equal specs only.
std::string KeyOf(const KernelSpec& spec) {
  std::string key = absl::StrCat(spec.op, AttributesToString(spec.attributes), spec.threads);
  for (const auto* types : {&spec.inputs, &spec.outputs}) {
    key += '>';
    for (const TensorType& type : *types)
      absl::StrAppend(&key, Info(type.dtype).name, "[", absl::StrJoin(type.shape, ","), "]");
  }
  return key;
}

// Fills one BoundProgram. The table of addresses is laid out first: inputs, constants, channels, then the buffers chunk
// by chunk. Those of parameters stand in the store.
class Binder {
 public:
  Binder(const RankProgram& program, const KernelRegistry& registry, ParameterStore& parameters, Transport& transport,
         ChannelTag first_tag)
      : program_(program), registry_(registry), parameters_(parameters), transport_(transport), first_tag_(first_tag) {}

  absl::StatusOr<std::unique_ptr<BoundProgram>> Run() {
    bound_ = std::make_unique<BoundProgram>();
    LayOutAddresses();
    // Channels first: the other ranks open their ends even where this one cannot go on.
    RETURN_IF_ERROR(OpenChannels());
    RETURN_IF_ERROR(BindParameters());
    for (size_t i = 0; i < program_.chunks.size(); ++i) RETURN_IF_ERROR(BindChunk(i));
    for (BoundChannel& channel : bound_->channels) {
      if (channel.info.sends) channel.copied_from = BindOperand(channel.info.copied_from, channel.chunk);
    }
    bound_->outputs = program_.outputs;
    for (const OutputRef& output : program_.outputs) {
      bound_->output_operands.push_back(BindOperand(output.from, ChunkPosition(output.chunk)));
    }
    bound_->scalars.assign(program_.scalars.size(), 0.0f);
    for (const ScalarOutput& scalar : program_.scalars) bound_->scalar_owners.push_back(scalar.owner);
    bound_->scratch = Buffer(scratch_bytes_);
    return std::move(bound_);
  }

 private:
  int ChunkPosition(ChunkId chunk) const {
    for (size_t i = 0; i < program_.chunks.size(); ++i) {
      if (program_.chunks[i].chunk == chunk) return static_cast<int>(i);
    }
    PIPELOOM_CHECK(false, "rank ", program_.rank.value(), " has no chunk ", chunk.value());
    return 0;
  }

  void LayOutAddresses() {
    first_constant_ = static_cast<size_t>(program_.inputs);
    first_channel_ = first_constant_ + program_.constants.size();
    size_t next = first_channel_ + program_.channels.size();
    for (const ChunkProgram& chunk : program_.chunks) {
      first_buffer_.push_back(next);
      next += chunk.buffers.size();
    }
    bound_->addresses.assign(next, nullptr);
    for (size_t i = 0; i < program_.chunks.size(); ++i) {
      for (size_t j = 0; j < program_.chunks[i].buffers.size(); ++j) {
        bound_->buffers.emplace_back(static_cast<size_t>(program_.chunks[i].buffers[j]));
        bound_->addresses[first_buffer_[i] + j] = bound_->buffers.back().data();
      }
    }
    for (size_t i = 0; i < program_.constants.size(); ++i) {
      bound_->constants.push_back(MakeConstant(program_.constants[i]));
      bound_->addresses[first_constant_ + i] = bound_->constants.back().data<char>();
    }
  }

  absl::Status BindParameters() {
    for (const ParameterRef& parameter : program_.parameters) {
      ASSIGN_OR_RETURN(const ParameterStore::Parameter* stored, parameters_.FindOrAdd(parameter.name, parameter.type));
      parameter_addresses_.push_back(&stored->data);
    }
    return absl::OkStatus();
  }

  void ListChannel(const BoundChannel& channel, int index) {
    auto& parts = bound_->channels_of[static_cast<size_t>(channel.chunk)];
    PartChannels& own = parts[static_cast<size_t>(channel.info.part)];
    (channel.info.sends ? own.sends : own.receives).push_back(index);
    if (!channel.info.sends) parts[static_cast<size_t>(channel.info.released_after)].released.push_back(index);
  }

  absl::Status OpenChannels() {
    bound_->channels_of.resize(program_.chunks.size());
    for (size_t i = 0; i < program_.channels.size(); ++i) {
      BoundChannel channel;
      channel.info = program_.channels[i];
      channel.chunk = ChunkPosition(channel.info.chunk);
      channel.info.spec.tag = ChannelTag(first_tag_.value() + channel.info.spec.tag.value());
      char* first_slot = nullptr;
      if (channel.info.sends) {
        ASSIGN_OR_RETURN(channel.send, transport_.OpenSend(channel.info.spec));
        first_slot = channel.send->Slot(0);
      } else {
        ASSIGN_OR_RETURN(channel.receive, transport_.OpenReceive(channel.info.spec));
        first_slot = channel.receive->Slot(0);
      }
      bound_->addresses[first_channel_ + i] = first_slot;
      ListChannel(channel, static_cast<int>(i));
      bound_->channels.push_back(std::move(channel));
    }
    return absl::OkStatus();
  }

  absl::Status BindChunk(size_t chunk) {
    bound_->chunks.emplace_back();
    for (size_t part = 0; part < program_.chunks[chunk].launches.size(); ++part) {
      for (const Launch& launch : program_.chunks[chunk].launches[part]) {
        ASSIGN_OR_RETURN(BoundLaunch bound, BindLaunch(launch, static_cast<int>(chunk)));
        std::vector<BoundLaunch>& launches = bound_->chunks.back()[part];
        // insert_send_receive puts the sends of accumulated gradients at the front of R; no other part has step sends.
        const bool goes_first = launch.kind == Launch::Kind::kSend && launches.empty();
        (goes_first ? bound_->first_sends : launches).push_back(std::move(bound));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<BoundLaunch> BindLaunch(const Launch& launch, int chunk) {
    BoundLaunch bound;
    bound.kind = launch.kind;
    bound.group = launch.group;
    bound.bytes = launch.bytes;
    bound.channel = launch.channel;
    bound.place = launch.place;
    for (const OperandRef& operand : launch.operands) bound.operands.push_back(BindOperand(operand, chunk));
    if (bound.operands.size() > bound_->kernel_operands.size()) bound_->kernel_operands.resize(bound.operands.size());
    if (launch.kind == Launch::Kind::kKernel || launch.kind == Launch::Kind::kAccumulate) {
      ASSIGN_OR_RETURN(bound.kernel, FindOrMakeKernel(launch.spec, launch.place));
    }
    if (launch.tail) {
      ASSIGN_OR_RETURN(bound.tail, FindOrMakeKernel(*launch.tail, launch.place));
    }
    return bound;
  }

  // A kernel holds no data between runs, so that all launches of one spec share one.
  absl::StatusOr<Kernel*> FindOrMakeKernel(const KernelSpec& spec, const std::string& place) {
    Kernel*& known = kernel_of_spec_[KeyOf(spec)];
    if (known != nullptr) return known;
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = registry_.Create("cpu", spec);
    if (!kernel.ok()) return Annotate(kernel.status(), place);
    scratch_bytes_ = std::max(scratch_bytes_, (*kernel)->scratch_bytes());
    bound_->kernels.push_back(*std::move(kernel));
    return known = bound_->kernels.back().get();
  }

  BoundOperand BindOperand(const OperandRef& ref, int chunk) const {
    const auto index = static_cast<size_t>(ref.index);
    size_t first = 0;
    switch (ref.space) {
      case OperandRef::Space::kInput:
        break;
      case OperandRef::Space::kParameter:
        return {parameter_addresses_[index], ref.stride, ref.slots, ref.first_apart, ref.per_group};
      case OperandRef::Space::kConstant:
        first = first_constant_;
        break;
      case OperandRef::Space::kSendChannel:
      case OperandRef::Space::kReceiveChannel:
        first = first_channel_;
        break;
      case OperandRef::Space::kBuffer:
        first = first_buffer_[static_cast<size_t>(chunk)];
        break;
    }
    return {&bound_->addresses[first + index], ref.stride, ref.slots, ref.first_apart, ref.per_group};
  }

  const RankProgram& program_;
  const KernelRegistry& registry_;
  ParameterStore& parameters_;
  Transport& transport_;
  const ChannelTag first_tag_;
  std::unique_ptr<BoundProgram> bound_;
  std::vector<char* const*> parameter_addresses_;  // in the store
  size_t first_constant_ = 0;
  size_t first_channel_ = 0;
  std::vector<size_t> first_buffer_;  // by chunk
  size_t scratch_bytes_ = 0;
  absl::flat_hash_map<std::string, Kernel*> kernel_of_spec_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BoundProgram>> BoundProgram::Bind(const RankProgram& program,
                                                                 const KernelRegistry& registry,
                                                                 ParameterStore& parameters, Transport& transport,
                                                                 ChannelTag first_tag) {
  return Binder(program, registry, parameters, transport, first_tag).Run();
}

}  // namespace pipeloom
