#include "plugin/runtime/build_rank_program.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/chunk_values.h"
#include "passes/ir/op_table.h"

namespace pipeloom {
namespace {

int Group(const Node& node) { return static_cast<int>(GetInt(node.attributes, "group", 1)); }

// Copies one chunk of the module into the program of its rank.
class ChunkBuilder {
 public:
  // `parameter_index`: places in the program's list, by name; over all chunks of the rank.
  ChunkBuilder(const Module& module, const Schedule& schedule, const StepInterface& step, ChunkId chunk,
               RankProgram* program, absl::flat_hash_map<std::string, int>* parameter_index)
      : module_(module),
        schedule_(schedule),
        step_(step),
        chunk_(chunk),
        values_(module, chunk),
        program_(*program),
        micro_batches_(module.config.micro_batches),
        parameter_index_(parameter_index) {}

  void Build() {
    program_.chunks.push_back({chunk_, {}, {}});
    AddChannels();
    for (const auto& graph : module_.graphs) {
      if (graph->chunk != chunk_) continue;
      for (const auto& node : graph->nodes()) NoteBuffers(*node);
    }
    first_frame_buffer_ = static_cast<int>(program_.chunks.back().buffers.size());
    for (const auto& graph : module_.graphs) {
      if (graph->chunk != chunk_) continue;
      for (const auto& node : graph->nodes()) {
        if (node->op == kCall) {
          AddCall(*graph, *node);
        } else {
          AddNode(*graph, *node);
        }
      }
    }
  }

 private:
  void AddChannels() {
    for (const auto& graph : module_.graphs) {
      if (graph->chunk != chunk_) continue;
      for (const auto& node : graph->nodes()) {
        if (node->op == "send" || node->op == "receive") AddChannel(*graph, *node);
      }
    }
    // A sending end's source may be a slot of another channel, so all channels come first.
    for (const auto& graph : module_.graphs) {
      if (graph->chunk != chunk_) continue;
      for (const auto& node : graph->nodes()) {
        if (node->op != "send") continue;
        RankChannel& channel = program_.channels[static_cast<size_t>(channel_index_.at(Number(*node)))];
        channel.copied_from = Ref(node->operands[0]);
        channel.direct = channel.copied_from.space == OperandRef::Space::kSendChannel;
      }
    }
  }

  static int64_t Number(const Node& node) { return GetInt(node.attributes, "channel", -1); }

  void AddChannel(const Graph& graph, const Node& node) {
    RankChannel channel;
    const Value& value = node.op == "send" ? *node.operands[0] : *node.results[0];
    const ChunkId other(static_cast<int>(GetInt(node.attributes, node.op == "send" ? "to" : "from", 0)));
    channel.sends = node.op == "send";
    channel.chunk = chunk_;
    channel.part = *graph.part;
    channel.spec.source = channel.sends ? program_.rank : schedule_.rank_of(other);
    channel.spec.destination = channel.sends ? schedule_.rank_of(other) : program_.rank;
    channel.spec.tag = ChannelTag(static_cast<int>(Number(node)));
    channel.spec.name = value.name;
    channel.spec.bytes = value.type.bytes();
    channel.spec.slots = static_cast<int>(GetInt(node.attributes, "slots", 1));
    if (node.info.rate == Rate::kMicro) channel.spec.round = micro_batches_;
    if (node.op == "receive") {
      channel.group = Group(node);
      channel.released_after =
          node.info.rate == Rate::kStep
              ? Part::kUpdate
              : PartOfLetter(GetString(node.attributes, "released_after", "F")).value_or(Part::kForward);
    }
    channel_index_[Number(node)] = static_cast<int>(program_.channels.size());
    program_.channels.push_back(std::move(channel));
  }

  void NoteBuffers(const Node& node, int first = 0) {
    std::vector<int64_t>& buffers = program_.chunks.back().buffers;
    for (const Value* result : node.results) {
      if (!result->placement || result->placement->space != Placement::Space::kBuffer) continue;
      const auto index = static_cast<size_t>(first + result->placement->index);
      if (buffers.size() <= index) buffers.resize(index + 1, 0);
      buffers[index] = std::max(buffers[index], result->type.bytes() * result->placement->slots);
    }
  }

  // The launches of a call are those of its body, on the call's operands and results and on the chunk's one frame.
  void AddCall(const Graph& graph, const Node& call) {
    const Graph& body = *BodyOf(module_, call);
    if (framed_.insert(&body).second) {
      for (const auto& node : body.nodes()) NoteBuffers(*node, first_frame_buffer_);
    }
    in_call_.clear();
    size_t operand = 0;
    for (const Value* input : body.inputs()) in_call_.emplace(input, Ref(call.operands[operand++]));
    for (const Value* parameter : body.parameters()) in_call_.emplace(parameter, Ref(call.operands[operand++]));
    for (size_t i = 0; i < call.results.size(); ++i) in_call_.emplace(body.outputs[i].value, Ref(call.results[i]));
    for (const auto& node : body.nodes()) {
      if (IsView(*node)) continue;
      Launch launch;
      launch.group = Group(*node);
      launch.place = Place(*node, CellInCall(call, node->info.cell));
      FillKernel(*node, &launch, [this](const Value* value) { return RefInCall(value); });
      program_.chunks.back().launches[static_cast<size_t>(*graph.part)].push_back(std::move(launch));
    }
  }

  OperandRef RefInCall(const Value* value) {
    while (value->producer != nullptr && IsView(*value->producer)) value = value->producer->operands[0];
    if (const auto known = in_call_.find(value); known != in_call_.end()) return known->second;
    OperandRef ref = Ref(value);
    if (ref.space == OperandRef::Space::kBuffer) ref.index += first_frame_buffer_;
    in_call_.emplace(value, ref);
    return ref;
  }

  static std::string Place(const Node& node, const std::string& cell) {
    return absl::StrCat(cell.empty() ? "" : "cell ", cell, cell.empty() ? "" : ", ", node.op,
                        node.results.empty() ? "" : " %", node.results.empty() ? "" : node.results[0]->name);
  }

  void AddNode(const Graph& graph, const Node& node) {
    if (IsView(node)) return;
    Launch launch;
    launch.group = Group(node);
    launch.place = Place(node, node.info.cell);
    if (node.op == "step_output") {
      const auto index = static_cast<int>(GetInt(node.attributes, "index", 0));
      program_.outputs.push_back({index, node.operands[0]->type, chunk_, Ref(node.operands[0])});
      return;
    }
    if (node.op == "send" || node.op == "receive") {
      if (node.info.rate == Rate::kMicro) return;  // done by the schedule's SEND and RECV
      launch.kind = node.op == "send" ? Launch::Kind::kSend : Launch::Kind::kReceive;
      launch.channel = channel_index_.at(Number(node));
    } else if (node.op == "grad_accumulate" || node.op == "micro_batch_merge") {
      FillMerge(node, &launch);
    } else {
      FillKernel(node, &launch, [this](const Value* value) { return Ref(value); });
    }
    program_.chunks.back().launches[static_cast<size_t>(*graph.part)].push_back(std::move(launch));
  }

  void FillMerge(const Node& node, Launch* launch) {
    launch->bytes = node.operands[0]->type.bytes();
    launch->operands = {Ref(node.operands[0]), Ref(node.results[0])};
    if (GetString(node.attributes, "reduce", "") == "concat") {
      launch->kind = Launch::Kind::kMergeConcat;
      return;
    }
    launch->kind = Launch::Kind::kAccumulate;
    launch->operands[0].per_group = true;
    launch->spec = {"grad_accumulate", {node.operands[0]->type}, {node.results[0]->type}, {}, program_.threads};
  }

  template <typename RefOf>
  void FillKernel(const Node& node, Launch* launch, RefOf ref_of) {
    if (node.op == "micro_batch_index") {
      launch->kind = Launch::Kind::kMicroBatch;
      launch->operands = {ref_of(node.results[0])};
      return;
    }
    launch->spec = {node.op, {}, {}, node.attributes, program_.threads};
    launch->group = std::min(launch->group, micro_batches_);
    const OpDef* op = FindOp(node.op);
    const bool reads_whole_step = op != nullptr && op->traits.whole_step;
    for (const Value* operand : node.operands) {
      launch->spec.inputs.push_back(operand->type);
      launch->operands.push_back(ref_of(operand));
      if (reads_whole_step) launch->operands.back().stride = 0;
    }
    for (const Value* written : WrittenOperands(node)) {
      program_.parameters[static_cast<size_t>(ParameterIndex(*written))].written = true;
    }
    for (const Value* result : node.results) {
      launch->spec.outputs.push_back(result->type);
      launch->operands.push_back(ref_of(result));
      launch->operands.back().per_group = true;
    }
    if (launch->group == 1) return;
    const int rest = micro_batches_ % launch->group;
    if (rest != 0) launch->tail = OverMicroBatches(launch->spec, rest);
    launch->spec = OverMicroBatches(launch->spec, launch->group);
  }

  // The kernel that reads `count` micro-batches of rows as one matrix.
  static KernelSpec OverMicroBatches(KernelSpec spec, int count) {
    for (TensorType& input : spec.inputs) input.shape[0] *= count;
    return spec;
  }

  OperandRef Ref(const Value* value) {
    const Value* root = values_.Root(value);
    OperandRef ref;
    switch (root->kind) {
      case Value::Kind::kInput:
        ref.space = OperandRef::Space::kInput;
        ref.index =
            static_cast<int>(std::find(step_.inputs.begin(), step_.inputs.end(), root->name) - step_.inputs.begin());
        if (root->batch_axis) {
          ref.stride = root->type.bytes() / micro_batches_;
          ref.slots = micro_batches_;
        }
        return ref;
      case Value::Kind::kParameter:
        ref.space = OperandRef::Space::kParameter;
        ref.index = ParameterIndex(*root);
        return ref;
      case Value::Kind::kConstant:
        ref.space = OperandRef::Space::kConstant;
        ref.index = ConstantIndex(*root);
        return ref;
      default:
        break;
    }
    PIPELOOM_CHECK(root->placement.has_value(), "%", root->name, " has no place");
    ref.stride = root->type.bytes();
    ref.slots = root->placement->slots;
    ref.first_apart = root->placement->first_apart;
    ref.index = root->placement->index;
    if (root->placement->space == Placement::Space::kChannel) {
      ref.index = channel_index_.at(ref.index);
      ref.space = program_.channels[static_cast<size_t>(ref.index)].sends ? OperandRef::Space::kSendChannel
                                                                          : OperandRef::Space::kReceiveChannel;
    }
    return ref;
  }

  int ConstantIndex(const Value& constant) {
    const auto [entry, added] = constant_index_.emplace(&constant, static_cast<int>(program_.constants.size()));
    if (added) program_.constants.push_back({constant.type, constant.elements});
    return entry->second;
  }

  int ParameterIndex(const Value& parameter) {
    const auto [entry, added] =
        parameter_index_->emplace(parameter.parameter, static_cast<int>(program_.parameters.size()));
    if (added) program_.parameters.push_back({parameter.parameter, parameter.type, /*written=*/false});
    return entry->second;
  }

  const Module& module_;
  const Schedule& schedule_;
  const StepInterface& step_;
  const ChunkId chunk_;
  const ChunkValues values_;
  RankProgram& program_;
  const int micro_batches_;
  int first_frame_buffer_ = 0;  // of the frame that all calls of the chunk use
  absl::flat_hash_set<const Graph*> framed_;
  absl::flat_hash_map<const Value*, OperandRef> in_call_;  // of the call at hand, by value of its body
  absl::flat_hash_map<std::string, int>* parameter_index_;
  absl::flat_hash_map<const Value*, int> constant_index_;
  absl::flat_hash_map<int64_t, int> channel_index_;  // by number in the module
};

std::vector<ScalarOutput> ScalarOutputs(const Module& module, const Schedule& schedule) {
  std::vector<ScalarOutput> scalars;
  for (const auto& graph : module.graphs) {
    for (const auto& node : graph->nodes()) {
      if (node->op != "step_output" || node->operands[0]->type != TensorType{DType::kFloat32, {}}) continue;
      scalars.push_back({static_cast<int>(GetInt(node->attributes, "index", 0)), schedule.rank_of(*graph->chunk)});
    }
  }
  return scalars;
}

}  // namespace

RankProgram BuildRankProgram(const Module& module, const Schedule& schedule, const StepInterface& step, RankId rank) {
  RankProgram program;
  program.rank = rank;
  program.ranks = schedule.ranks();
  program.micro_batches = module.config.micro_batches;
  program.inputs = static_cast<int>(step.inputs.size());
  program.threads = module.config.threads;
  program.trains = Trains(schedule);
  program.scalars = ScalarOutputs(module, schedule);
  absl::flat_hash_map<std::string, int> parameter_index;
  for (int chunk = 0; chunk < schedule.chunks(); ++chunk) {
    if (schedule.rank_of(ChunkId(chunk)) != rank) continue;
    ChunkBuilder(module, schedule, step, ChunkId(chunk), &program, &parameter_index).Build();
  }
  program.actions = schedule.actions[static_cast<size_t>(rank.value())];
  return program;
}

}  // namespace pipeloom
