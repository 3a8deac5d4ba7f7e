#include "passes/schedule/check_progress.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/schedule/live_window.h"

namespace pipeloom {
namespace {

// What has happened on one channel so far, as counts of messages.
struct Channel {
  ChannelCredits credits;
  std::vector<int> acquired;   // micro-batch of each message that was or is being made
  std::vector<bool> last_use;  // by micro-batch: whether the receiver has used it for the last time
  int sent = 0;
  int reached = 0;  // RECVs at which the receiver has arrived
  int received = 0;
  int released = 0;

  const CommunicationEdge& edge() const { return credits.edge; }
};

class Execution {
 public:
  Execution(const Schedule& schedule, absl::Span<const CommunicationEdge> edges,
            absl::Span<const ChannelCredits> credits, SendModel model)
      : schedule_(schedule), model_(model), channels_of_(schedule.chunks()), next_(schedule.ranks(), 0) {
    for (const ChannelCredits& channel : credits) AddChannel(channel);
    for (const CommunicationEdge& edge : edges) {
      const bool has_credits = std::any_of(credits.begin(), credits.end(),
                                           [&](const ChannelCredits& channel) { return channel.edge == edge; });
      if (!has_credits) AddChannel({edge, schedule.micro_batches, KindsOf(edge.forward).part, 1});
    }
  }

  absl::Status Run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int rank = 0; rank < schedule_.ranks(); ++rank) moved |= Advance(rank);
    }
    for (int rank = 0; rank < schedule_.ranks(); ++rank) {
      if (!HasEnded(rank)) return Deadlock();
    }
    return absl::OkStatus();
  }

 private:
  void AddChannel(const ChannelCredits& credits) {
    for (const ChunkId chunk : {credits.edge.source, credits.edge.destination}) {
      channels_of_[chunk.value()].push_back(static_cast<int>(channels_.size()));
    }
    channels_.emplace_back();
    channels_.back().credits = credits;
    channels_.back().last_use.resize(schedule_.micro_batches);
  }

  bool HasEnded(int rank) const { return next_[rank] == static_cast<int>(schedule_.actions[rank].size()); }

  // Runs the rank as far as it gets; whether anything happened that another rank may wait for.
  bool Advance(int rank) {
    bool moved = false;
    while (!HasEnded(rank)) {
      const Action& action = schedule_.actions[rank][next_[rank]];
      moved |= Reach(action);
      if (!WaitsFor(action).empty()) return moved;
      Finish(action);
      ++next_[rank];
      moved = true;
    }
    return moved;
  }

  bool Makes(const Action& action, const Channel& channel) const {
    return action.chunk == channel.edge().source && Performs(action.kind, KindsOf(channel.edge().forward).part);
  }
  bool Sends(const Action& action, const Channel& channel) const {
    return action.chunk == channel.edge().source && action.kind == KindsOf(channel.edge().forward).send;
  }
  bool Receives(const Action& action, const Channel& channel) const {
    return action.chunk == channel.edge().destination && action.kind == KindsOf(channel.edge().forward).receive;
  }

  // Arriving at a RECV lets its senders go on, even before anything was received.
  bool Reach(const Action& action) {
    bool moved = false;
    for (const int index : channels_of_[action.chunk.value()]) {
      Channel& channel = channels_[index];
      if (!Receives(action, channel) || channel.reached > channel.received) continue;
      ++channel.reached;
      moved = true;
    }
    return moved;
  }

  // What the action waits for; empty if it can run.
  std::string WaitsFor(const Action& action) const {
    for (const int index : channels_of_[action.chunk.value()]) {
      const Channel& channel = channels_[index];
      if (Receives(action, channel) && channel.received == channel.sent) {
        return absl::StrCat("message ", channel.received, " of ", EdgeToString(channel.edge()));
      }
      if (!Makes(action, channel)) continue;
      const int k = static_cast<int>(channel.acquired.size());
      const int slots = channel.credits.slots;
      if (channel.sent < k) {
        return absl::StrCat("its own send of message ", channel.sent, " of ", EdgeToString(channel.edge()));
      }
      if (model_ == SendModel::kRendezvous && k - channel.reached >= slots) {
        return absl::StrCat("the RECV of message ", k - slots, " of ", EdgeToString(channel.edge()), " (slots: ", slots,
                            ")");
      }
      if (model_ == SendModel::kBuffered && k - channel.released >= slots) {
        return absl::StrCat("a free slot of ", EdgeToString(channel.edge()), " (slots: ", slots, ", released after ",
                            Info(channel.credits.released_after).text, " in groups of ", channel.credits.group,
                            "); give it more slots, or release them earlier");
      }
    }
    return "";
  }

  void Finish(const Action& action) {
    for (const int index : channels_of_[action.chunk.value()]) {
      Channel& channel = channels_[index];
      if (Makes(action, channel)) channel.acquired.push_back(action.micro_batch.value());
      if (Sends(action, channel)) ++channel.sent;
      if (Receives(action, channel)) ++channel.received;
      if (action.chunk == channel.edge().destination) Release(action, channel);
    }
  }

  void Release(const Action& action, Channel& channel) const {
    const MicroBatchRange used =
        LastUsedBy(action, channel.credits.released_after, channel.credits.group, schedule_.micro_batches);
    for (int m = used.begin; m < used.end; ++m) channel.last_use[m] = true;
    while (channel.released < channel.received && channel.last_use[channel.acquired[channel.released]]) {
      ++channel.released;
    }
  }

  absl::Status Deadlock() const {
    std::string text =
        absl::StrCat("deadlock under ", model_ == SendModel::kBuffered ? "buffered" : "rendezvous", " sends");
    for (int rank = 0; rank < schedule_.ranks(); ++rank) {
      absl::StrAppend(&text, "\n  rank ", rank);
      if (HasEnded(rank)) {
        absl::StrAppend(&text, " has ended");
        continue;
      }
      const std::vector<Action>& actions = schedule_.actions[rank];
      absl::StrAppend(&text, " at ", ActionToString(actions[next_[rank]]), " (action ", next_[rank], " of ",
                      actions.size(), ") waits for ", WaitsFor(actions[next_[rank]]));
    }
    return absl::InvalidArgumentError(text);
  }

  const Schedule& schedule_;
  const SendModel model_;
  std::vector<Channel> channels_;
  std::vector<std::vector<int>> channels_of_;  // those that begin or end at each chunk
  std::vector<int> next_;                      // of each rank, the action that it is at
};

}  // namespace

absl::Status CheckProgress(const Schedule& lowered, absl::Span<const CommunicationEdge> edges,
                           absl::Span<const ChannelCredits> credits, SendModel model) {
  return Execution(lowered, edges, credits, model).Run();
}

}  // namespace pipeloom
