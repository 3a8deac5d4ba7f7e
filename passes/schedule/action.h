#ifndef PASSES_SCHEDULE_ACTION_H_
#define PASSES_SCHEDULE_ACTION_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/base/ids.h"

namespace pipeloom {

enum class ActionKind : uint8_t {
  kForward,
  kBackwardInput,   // the chain of activation gradients
  kBackwardWeight,  // what serves one parameter's gradient only
  kBackward,        // kBackwardInput, then kBackwardWeight, bit for bit
  kSendForward,     // hands all forward boundary values of a chunk over to other ranks; never waits
  kReceiveForward,  // waits for all forward boundary values that a chunk gets from other ranks
  kSendBackward,
  kReceiveBackward,
  kReduce,    // gradients, over the stages that share a parameter, then over data ranks; outputs of the step
  kExchange,  // scalars of the update or of the result that other ranks need
  kStep,      // the update
};

struct ActionKindInfo {
  ActionKind kind;
  absl::string_view text;
  bool per_micro_batch;  // false: once a step, for all chunks of the rank
};

// The one table of kinds, in the order of the enum.
inline constexpr ActionKindInfo kActionKinds[] = {
    {ActionKind::kForward, "F", true},           {ActionKind::kBackwardInput, "B", true},
    {ActionKind::kBackwardWeight, "W", true},    {ActionKind::kBackward, "BW", true},
    {ActionKind::kSendForward, "SEND_F", true},  {ActionKind::kReceiveForward, "RECV_F", true},
    {ActionKind::kSendBackward, "SEND_B", true}, {ActionKind::kReceiveBackward, "RECV_B", true},
    {ActionKind::kReduce, "REDUCE", false},      {ActionKind::kExchange, "EXCHANGE", false},
    {ActionKind::kStep, "STEP", false},
};

constexpr const ActionKindInfo& Info(ActionKind kind) { return kActionKinds[static_cast<int>(kind)]; }

// Whether an action of `kind` does `part` of a chunk's work, `part` being F, B or W: BW does both B and W.
constexpr bool Performs(ActionKind kind, ActionKind part) {
  return kind == part ||
         (kind == ActionKind::kBackward && (part == ActionKind::kBackwardInput || part == ActionKind::kBackwardWeight));
}

// F, B, W or BW.
constexpr bool IsCompute(ActionKind kind) { return kind <= ActionKind::kBackward; }

// One piece of a rank's work. Kinds that stand once a step have chunk 0 and micro-batch 0.
struct Action {
  ActionKind kind = ActionKind::kForward;
  ChunkId chunk = ChunkId(0);
  MicroBatchId micro_batch = MicroBatchId(0);

  friend bool operator==(const Action& a, const Action& b) {
    return a.kind == b.kind && a.chunk == b.chunk && a.micro_batch == b.micro_batch;
  }
  friend bool operator!=(const Action& a, const Action& b) { return !(a == b); }
  template <typename H>
  friend H AbslHashValue(H h, const Action& action) {
    return H::combine(std::move(h), action.kind, action.chunk, action.micro_batch);
  }
};

// Chunk, kind, micro-batch: 2F0, 0BW3, 1RECV_F1; kinds that stand once a step are their bare text.
std::string ActionToString(const Action& action);
std::ostream& operator<<(std::ostream& os, const Action& action);

// Exact inverse of ActionToString; InvalidArgument, naming the kinds, for any other text.
absl::StatusOr<Action> ParseAction(absl::string_view text);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_ACTION_H_
