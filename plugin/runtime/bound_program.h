#ifndef PLUGIN_RUNTIME_BOUND_PROGRAM_H_
#define PLUGIN_RUNTIME_BOUND_PROGRAM_H_

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/base/buffer.h"
#include "kernels/registry/kernel_registry.h"
#include "kernels/transport/transport.h"
#include "plugin/runtime/parameter_store.h"
#include "plugin/runtime/rank_program.h"

namespace pipeloom {

// An operand whose address is known but for the unit. `base` points into the program's table of addresses, where only
// those of the step's inputs change, or to that of a parameter, which a host may bind anew between steps.
struct BoundOperand {
  char* const* base = nullptr;
  int64_t stride = 0;
  int slots = 1;
  bool first_apart = false;
  bool per_group = false;

  char* Address(int unit) const { return *base + stride * (first_apart ? std::min(unit, 1) : unit % slots); }
};

struct BoundLaunch {
  Launch::Kind kind = Launch::Kind::kKernel;
  int group = 1;
  int64_t bytes = 0;
  Kernel* kernel = nullptr;
  Kernel* tail = nullptr;
  std::vector<BoundOperand> operands;
  int channel = -1;
  std::string place;
};

struct BoundChannel {
  RankChannel info;
  std::unique_ptr<SendEnd> send;
  std::unique_ptr<ReceiveEnd> receive;
  BoundOperand copied_from;
  int chunk = 0;  // position among the rank's chunks
};

// The channels that one part of a chunk has to do with, by index.
struct PartChannels {
  std::vector<int> sends;
  std::vector<int> receives;
  std::vector<int> released;  // whose slots are free after the part
};

// A rank's program with its kernels made, its buffers allocated and its channels open.
struct BoundProgram {
  static absl::StatusOr<std::unique_ptr<BoundProgram>> Bind(const RankProgram& program, const KernelRegistry& registry,
                                                            ParameterStore& parameters, Transport& transport,
                                                            ChannelTag first_tag);

  void SetInputs(absl::Span<const TensorView> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) addresses[i] = static_cast<char*>(inputs[i].data);
  }

  std::vector<std::unique_ptr<Kernel>> kernels;  // one for all launches of a spec
  std::vector<Buffer> buffers;                   // of all chunks
  std::vector<Tensor> constants;
  std::vector<char*> addresses;  // of the step's inputs first; never grows after Bind
  std::vector<BoundChannel> channels;
  std::vector<std::array<std::vector<BoundLaunch>, 5>> chunks;  // launches by Part
  // The sends that begin part R of all chunks: they come before any chunk waits in R for what another one sends.
  std::vector<BoundLaunch> first_sends;
  std::vector<std::array<PartChannels, 5>> channels_of;  // of each chunk, by Part
  std::vector<OutputRef> outputs;
  std::vector<BoundOperand> output_operands;
  Buffer scratch;                      // of the kernel that needs most
  std::vector<void*> kernel_operands;  // room for the kernel that has most
  std::vector<float> scalars;          // of the step
  std::vector<RankId> scalar_owners;
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_BOUND_PROGRAM_H_
