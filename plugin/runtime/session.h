#ifndef PLUGIN_RUNTIME_SESSION_H_
#define PLUGIN_RUNTIME_SESSION_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/base/buffer.h"
#include "kernels/registry/kernel_registry.h"
#include "kernels/transport/transport.h"
#include "plugin/runtime/action_time.h"
#include "plugin/runtime/compile.h"

namespace pipeloom {

struct SessionOptions {
  // How long any wait for another rank may last before the step fails.
  std::chrono::milliseconds deadline = std::chrono::seconds(300);
  // Where ranks are processes: every rank gets all outputs of a step, not its own ones only.
  bool output_broadcast = false;
  // Names and values that must be the same on all ranks, such as flags; compared at the start where ranks are
  // processes.
  std::vector<std::pair<std::string, std::string>> configuration;
  // Makes kernels for the ops that we have none for, on the ranks' threads; may be empty.
  KernelFactory host_kernels;
};

// The ranks of one pipeline and the parameters that they hold. Programs (training and inference, one for each batch
// shape) share ranks and parameters. Used by one thread at a time.
class Session {
 public:
  // All ranks in this process. Each has its own compute threads; rank 0 runs on the caller's thread, every other one on
  // a thread of the session.
  static absl::StatusOr<std::unique_ptr<Session>> Create(int ranks, const SessionOptions& options);

  // One rank, on the caller's thread; the others run the same host program, each with a session of its own over its end
  // of `transport`. All make the same calls with the same arguments in the same order, and each gives the whole batch.
  // The session tells the others what it is about to do before it sends anything else: what a rank does otherwise is
  // refused by all, naming the rank and both calls. The calls for parameters and OnRankZero are collective too, but for
  // WriteParameter, which writes what this rank holds. When a call has failed, all later ones fail.
  static absl::StatusOr<std::unique_ptr<Session>> CreateForRank(std::unique_ptr<Transport> transport,
                                                                const SessionOptions& options);
  virtual ~Session() = default;

  // Whose calls these are; 0 where all ranks are in this process.
  virtual RankId rank() const = 0;
  virtual int ranks() const = 0;

  // Makes the kernels and buffers of `program` on every rank; parameters that the session does not have yet are made
  // and hold zeros; one that is new on a rank only gets the value that other ranks have. InvalidArgument where a
  // parameter has another type than in an earlier program, or where the program is for another number of ranks. Returns
  // the program's number for Run.
  virtual absl::StatusOr<int> Load(const CompiledProgram& program) = 0;

  // The outputs that Run writes here, in order: of the whole batch; those that only another process gets have size zero
  // ([0, ...]). Every process gets the scalar ones.
  virtual std::vector<TensorType> OutputTypes(int program) const = 0;

  // Runs one step. `inputs` in the order of the step graph's with the types of the whole batch (CompiledProgram's),
  // `outputs` with OutputTypes; these are written where they point to. InvalidArgument, before
  // anything runs, for wrong types; FailedPrecondition where a parameter that the step updates would stay old on a rank
  // where another program uses it. Allocates nothing from the third step of a program on. An error on one rank ends
  // the step on all with that error, which names rank, action and cell; then no parameter has changed, unless the error
  // arose in the update itself. A loss that is not finite is such an error too. After an error in a rank the session
  // can only be read.
  virtual absl::Status Run(int program, absl::Span<const TensorView> inputs, absl::Span<const TensorView> outputs) = 0;

  // How long the actions of each rank took, summed over all steps of a program so far.
  virtual std::vector<std::vector<ActionTime>> Times(int program) const = 0;

  // All copies of a parameter, over the ranks that use it. NotFound names the parameter; InvalidArgument both types.
  virtual absl::Status WriteParameter(const std::string& name, const TensorView& value) = 0;
  // The copies of a parameter, one a rank that uses it; they are equal unless a step failed in its update. NotFound as
  // above.
  virtual absl::StatusOr<std::vector<Tensor>> ReadCopies(const std::string& name) = 0;
  // That of the lowest such rank.
  virtual absl::StatusOr<Tensor> ReadParameter(const std::string& name);

  // Does `work` on rank 0 only, such as reading or writing a file; all ranks get what it returned. `doing` names it:
  // "writing weights.safetensors".
  virtual absl::StatusOr<std::string> OnRankZero(absl::string_view doing,
                                                 const std::function<absl::StatusOr<std::string>()>& work);

  // From now on the bytes of one rank's copy of a parameter are the host's, at `memory`, aligned to the element:
  // kernels read and write them in place, and what stands there is its value. All programs see it from their next step
  // on, also those that are loaded later. They stay the host's to keep until the parameter is bound again, or without
  // data, which gives it memory of the session again, with the same value. Not collective. InvalidArgument for another
  // type, and for a rank that is not this session's.
  virtual absl::Status BindParameter(RankId rank, const std::string& name, const TensorView& memory) = 0;

  // The host cannot go on: every wait of every rank, now and later, ends with this error. Any thread may say so.
  virtual void Abandon(const absl::Status& error) = 0;

  // What the host refuses of itself before it comes to Load: the error goes to all ranks, unless all refuse alike,
  // after which the session can go on. Returns the error.
  virtual absl::Status Refuse(const absl::Status& error) { return error; }
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_SESSION_H_
