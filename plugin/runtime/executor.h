#ifndef PLUGIN_RUNTIME_EXECUTOR_H_
#define PLUGIN_RUNTIME_EXECUTOR_H_

#include <chrono>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/registry/kernel_registry.h"
#include "kernels/transport/transport.h"
#include "plugin/runtime/action_time.h"
#include "plugin/runtime/bound_program.h"
#include "plugin/runtime/exchange.h"
#include "plugin/runtime/parameter_store.h"
#include "plugin/runtime/rank_program.h"

namespace pipeloom {

// Runs one rank's program, step by step, on the rank's own thread: a loop over its actions. Whatever can be looked up,
// made or allocated is so in Create.
class Executor {
 public:
  // Opens the program's channels on `transport` with tags from `first_tag` on; all ranks do so with the same numbers.
  // `writes_scalars`: false where ranks write to the same outputs, and another one writes the scalar ones.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(const RankProgram& program, const KernelRegistry& registry,
                                                          ParameterStore& parameters, Transport& transport,
                                                          ChannelTag first_tag, std::chrono::milliseconds deadline,
                                                          bool writes_scalars);

  // One step. Writes the outputs that this rank makes, and the scalar ones. The error of this rank poisons the
  // transport and names rank, action and node; that of another rank is returned with the place where this rank was. A
  // scalar output of training that is not finite is refused by all ranks alike, before the update, and poisons nothing.
  absl::Status Run(absl::Span<const TensorView> inputs, absl::Span<const TensorView> outputs);

  int threads() const { return threads_; }  // compute threads that its kernels were made for
  int64_t step() const { return step_; }    // the number of the next one

  // How long each action of the program took, summed over all steps so far.
  const std::vector<ActionTime>& times() const { return times_; }

 private:
  Executor(const RankProgram& program, Transport& transport, std::unique_ptr<BoundProgram> bound, Exchange exchange,
           std::chrono::milliseconds deadline, bool writes_scalars);

  absl::Status DoGuarded(const Action& action);
  absl::Status Do(const Action& action);
  absl::Status RunMicroBatch(int chunk, Part part, int micro_batch);
  absl::Status RunPart(int chunk, Part part, int micro_batch);
  absl::Status RunLaunches(std::vector<BoundLaunch>& launches, int micro_batch);
  absl::Status RunLaunch(BoundLaunch& launch, int micro_batch);
  absl::Status RunStepMessage(BoundLaunch& launch);
  absl::Status RunExchange();
  absl::Status AcquireDirect(int chunk, Part part, int micro_batch);
  absl::Status Send(int chunk, Part part, int micro_batch);
  absl::Status Receive(int chunk, Part part, int micro_batch);
  void ReleaseAfter(int chunk, Part part, int micro_batch);
  void ReleaseStepChannels();
  absl::Status Acquire(BoundChannel& channel, int64_t message);
  absl::Status Await(BoundChannel& channel, int64_t message);
  absl::Status CheckScalars() const;
  absl::Status Failed(const Action& action, const absl::Status& status);
  void WriteOutputs(absl::Span<const TensorView> outputs) const;
  Deadline DeadlineNow() const { return std::chrono::steady_clock::now() + deadline_; }
  const PartChannels& ChannelsOf(int chunk, Part part) const {
    return bound_->channels_of[static_cast<size_t>(chunk)][static_cast<size_t>(part)];
  }
  // Messages are numbered over the life of a channel.
  int64_t Message(int micro_batch) const { return step_ * micro_batches_ + micro_batch; }
  int ChunkPosition(ChunkId chunk) const { return position_of_chunk_[static_cast<size_t>(chunk.value())]; }
  bool EndsGroup(int micro_batch, int group) const {
    return (micro_batch + 1) % group == 0 || micro_batch + 1 == micro_batches_;
  }

  Transport& transport_;
  const std::unique_ptr<BoundProgram> bound_;
  Exchange exchange_;
  const std::chrono::milliseconds deadline_;
  const RankId rank_;
  const int micro_batches_;
  const int threads_;
  const bool trains_;
  const bool writes_scalars_;
  std::vector<ActionTime> times_;  // the program's actions, in order
  const std::vector<ScalarOutput> scalars_;
  std::vector<int> position_of_chunk_;  // among this rank's, by chunk
  int64_t step_ = 0;
  ActionTime* current_ = nullptr;
  const BoundLaunch* running_ = nullptr;    // for messages
  const ChannelSpec* waits_for_ = nullptr;  // for messages: the channel waited for last
  bool refused_ = false;                    // by all ranks alike
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_EXECUTOR_H_
