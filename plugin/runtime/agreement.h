#ifndef PLUGIN_RUNTIME_AGREEMENT_H_
#define PLUGIN_RUNTIME_AGREEMENT_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plugin/runtime/bulk.h"
#include "plugin/runtime/peer_channels.h"

namespace pipeloom {

// What a rank is about to do. It travels as it lies in memory.
struct Call {
  enum class Kind : int32_t { kStart, kLoad, kBound, kStep, kReadParameter, kOnRankZero, kRefused, kEnd };

  Kind kind = Kind::kStart;
  int32_t program = 0;
  int64_t step = 0;     // of the program
  uint64_t digest = 0;  // of what must be the same on all ranks
  char text[232] = {};  // for messages; ends with 0

  void SetText(absl::string_view value);  // cut where it is too long
};

// How ranks that are programs of their own keep together: before each thing that all ranks do, each tells all others
// what it is about to do, and goes on once it knows that all are about to do the same. So a rank with another batch,
// with calls in another order or whose data ended earlier is seen by every rank before anything is sent.
class Agreement {
 public:
  static absl::StatusOr<Agreement> Open(Transport& transport, ChannelTag tag, std::chrono::milliseconds deadline);

  // OK where all ranks gave an equal call (texts may differ). FailedPrecondition tells what each rank called; the same
  // message on all ranks.
  absl::Status On(const Call& mine);

  // OK where all ranks have the same `text`, a line for each thing. InvalidArgument names the first line that a rank
  // has otherwise than rank 0: "rank 1 has `micro_batches=8`, rank 0 has `micro_batches=4`; <advice>".
  absl::Status OnText(Call mine, const std::string& text, absl::string_view advice, Bulk& bulk);

  // Tells the others that this rank makes no more calls; waits for none of them.
  void End();

  const ChannelSpec* failed_channel() const { return channels_.failed(); }

 private:
  Agreement(PeerChannels channels, int ranks, std::chrono::milliseconds deadline)
      : channels_(std::move(channels)), calls_(static_cast<size_t>(ranks)), deadline_(deadline) {}

  absl::Status Tell(const Call& mine);
  bool AllEqual() const;
  absl::Status DifferentCalls() const;

  PeerChannels channels_;
  std::vector<Call> calls_;  // of all ranks, the latest
  int64_t told_ = 0;
  std::chrono::milliseconds deadline_;
};

}  // namespace pipeloom

#endif  // PLUGIN_RUNTIME_AGREEMENT_H_
