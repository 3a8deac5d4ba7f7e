#ifndef PLUGIN_RUNTIME_RANK_PROGRAM_H_
#define PLUGIN_RUNTIME_RANK_PROGRAM_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/buffer.h"
#include "kernels/registry/kernel.h"
#include "kernels/transport/transport.h"
#include "passes/ir/graph.h"
#include "passes/schedule/action.h"

namespace pipeloom {

// Where an operand of a launch lies. `index` names a buffer of the chunk, a channel, an input of the step, a parameter
// or a constant of the rank. Unit u (a micro-batch, or a group of them) lies `stride` bytes after unit u - 1, in slot
// u % slots; with `first_apart` in slot min(u, 1).
struct OperandRef {
  enum class Space { kBuffer, kSendChannel, kReceiveChannel, kInput, kParameter, kConstant };
  Space space = Space::kBuffer;
  int index = 0;
  int64_t stride = 0;
  int slots = 1;
  bool first_apart = false;
  bool per_group = false;  // units are groups: made, or accumulated, once a group
};

// One piece of a chunk's work.
struct Launch {
  enum class Kind {
    kKernel,
    kAccumulate,   // operand 1 += operand 0; the first time operand 1 = operand 0
    kMergeConcat,  // operand 0 becomes the micro-batch's part of operand 1
    kSend,         // once a step: operand 0 goes into channel `channel`
    kReceive,      // once a step: waits for channel `channel`
    kMicroBatch,   // operand 0, i64[], becomes the number of the micro-batch
  };
  Kind kind = Kind::kKernel;
  KernelSpec spec;                 // of `group` micro-batches; for kAccumulate that of the addition
  std::optional<KernelSpec> tail;  // of the last group, where that one is short
  int group = 1;                   // runs once a group of micro-batches, aligned at micro-batch 0
  int64_t bytes = 0;               // of one unit that a copy moves
  int channel = -1;
  std::vector<OperandRef> operands;  // inputs, then outputs
  std::string place;                 // "cell _backbone.layer1, matmul %a", for messages
};

struct ChunkProgram {
  ChunkId chunk;
  std::vector<int64_t> buffers;                 // bytes of each
  std::array<std::vector<Launch>, 5> launches;  // by Part
};

// One end of a channel that this rank holds. A channel for values of rate step has rounds of one message.
struct RankChannel {
  ChannelSpec spec;
  ChunkId chunk;               // of this end
  Part part = Part::kForward;  // that sends or receives
  bool sends = false;
  // A sending end whose value a kernel makes in the slot itself; otherwise `copied_from` is where it is made.
  bool direct = false;
  OperandRef copied_from;
  // A receiving end: the slot is free after this part (of the last micro-batch of the group).
  Part released_after = Part::kForward;
  int group = 1;
};

struct ParameterRef {
  std::string name;
  TensorType type;
  bool written = false;  // by an update of this rank
};

struct ConstantRef {
  TensorType type;
  std::vector<double> elements;  // all, or one that all are equal to
};

// An output of the step that this rank makes.
struct OutputRef {
  int index = 0;  // among the step's outputs
  TensorType type;
  ChunkId chunk;
  OperandRef from;
};

// An f32[] output of the step: every rank learns its value.
struct ScalarOutput {
  int index = 0;  // among the step's outputs
  RankId owner;
};

// Everything that one rank needs to run its share of a step; holds nothing of the compiler.
struct RankProgram {
  RankId rank;
  int ranks = 1;
  int micro_batches = 1;
  int inputs = 0;  // of the step
  int threads = 1;
  bool trains = false;
  std::vector<ChunkProgram> chunks;
  std::vector<RankChannel> channels;  // `channel` and channel operands are indices into it
  std::vector<ParameterRef> parameters;
  std::vector<ConstantRef> constants;
  std::vector<OutputRef> outputs;
  std::vector<ScalarOutput> scalars;  // of the step; the same on all ranks
  std::vector<Action> actions;
};

// One line a launch, channel, buffer and action; the same text for the same program, on every machine.
std::string RankProgramToString(const RankProgram& program);

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_RANK_PROGRAM_H_
