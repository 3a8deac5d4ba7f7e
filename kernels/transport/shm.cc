#include "kernels/transport/shm.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "kernels/transport/shm_channels.h"
#include "kernels/transport/shm_ranks.h"
#include "kernels/transport/shm_rendezvous.h"
#include "kernels/transport/wait.h"

namespace pipeloom {
namespace {

using Clock = Deadline::clock;

// How often a wait looks whether the processes of the others live.
constexpr std::chrono::milliseconds kTimeBetweenLooks(100);
// The look opens files, and knowing when it is due takes a look at the clock, which costs more than a poll.
constexpr int kPollsPerClockRead = 16;

// What a rank's transport and its ends share; it leaves the world with the last of them.
struct Rank {
  Rank(std::unique_ptr<ShmRanks> ranks_in, std::chrono::milliseconds lock_time_in)
      : ranks(std::move(ranks_in)), channels(ranks->arena(), ranks->list_bytes()), lock_time(lock_time_in) {}

  absl::StatusOr<ShmChannel> Open(const ChannelSpec& spec, ChannelEnd end) {
    RETURN_IF_ERROR(CheckChannelEnd(spec, end, ranks->rank(), ranks->size()));
    return channels.Open(spec, end, Clock::now() + lock_time);
  }

  const std::unique_ptr<ShmRanks> ranks;
  ShmChannels channels;
  const std::chrono::milliseconds lock_time;  // longest wait for another rank that opens a channel
};

// WaitUntil, which also ends when a rank's process dies, and when `other` has left for good.
template <typename Ready>
absl::Status Wait(ShmRanks& ranks, RankId other, const Ready& ready, Deadline deadline, const WaitReason& reason) {
  int polls = 0;
  Deadline next_look = Deadline::max();
  const auto poll = [&] {
    if (ranks.failed()) return false;  // WaitUntil asks for the failure next
    if (ready()) return true;
    if (++polls % kPollsPerClockRead != 0) return false;
    const Deadline now = Clock::now();
    if (polls == kPollsPerClockRead) next_look = now + kTimeBetweenLooks;
    if (now < next_look) return false;
    next_look = now + kTimeBetweenLooks;
    ranks.CheckAlive();
    // What it did before it left counts: it is asked for once more.
    if (ranks.HasLeft(other) && !ready()) {
      ranks.Fail(absl::UnavailableError(absl::StrCat("rank ", reason.rank.value(), ": ", ChannelName(reason.channel),
                                                     ", message ", reason.message, ": ", reason.awaited,
                                                     " cannot come, since rank ", other.value(),
                                                     " has closed its transport; see why it ended first")));
    }
    return false;
  };
  return WaitUntil(poll, ranks.failure(), deadline, reason);
}

class ShmSendEnd : public SendEnd {
 public:
  ShmSendEnd(std::shared_ptr<Rank> rank, ShmChannel channel) : rank_(std::move(rank)), channel_(std::move(channel)) {}

  char* Slot(int64_t k) override { return channel_.Slot(k); }

  absl::Status Acquire(int64_t k, Deadline deadline) override {
    const ChannelSpec& spec = channel_.spec;
    const int64_t needed = ReleasedBefore(spec, k);
    const auto is_free = [&] { return channel_.header->released.load(std::memory_order_acquire) >= needed; };
    return Wait(*rank_->ranks, spec.destination, is_free, deadline, {spec.source, spec, k, "a free slot"});
  }

  void Send(int64_t k) override {
    const int64_t sent = channel_.header->sent.load(std::memory_order_relaxed);
    PIPELOOM_CHECK(k == sent, ChannelName(channel_.spec), ": message ", k, " sent where ", sent, " is next");
    channel_.header->sent.store(k + 1, std::memory_order_release);
  }

 private:
  const std::shared_ptr<Rank> rank_;
  const ShmChannel channel_;
};

class ShmReceiveEnd : public ReceiveEnd {
 public:
  ShmReceiveEnd(std::shared_ptr<Rank> rank, ShmChannel channel)
      : rank_(std::move(rank)), channel_(std::move(channel)) {}

  char* Slot(int64_t k) override { return channel_.Slot(k); }

  absl::Status Receive(int64_t k, Deadline deadline) override {
    const ChannelSpec& spec = channel_.spec;
    const auto has_arrived = [&] { return channel_.header->sent.load(std::memory_order_acquire) > k; };
    return Wait(*rank_->ranks, spec.source, has_arrived, deadline, {spec.destination, spec, k, "its arrival"});
  }

  void Release(int64_t k) override {
    const int64_t released = channel_.header->released.load(std::memory_order_relaxed);
    const int64_t sent = channel_.header->sent.load(std::memory_order_relaxed);
    PIPELOOM_CHECK(released <= k && k < sent, ChannelName(channel_.spec), ": message ", k, " released, with ", released,
                   " released before and ", sent, " sent");
    channel_.header->released.store(k + 1, std::memory_order_release);
  }

 private:
  const std::shared_ptr<Rank> rank_;
  const ShmChannel channel_;
};

class ShmTransport : public Transport {
 public:
  explicit ShmTransport(std::shared_ptr<Rank> rank) : rank_(std::move(rank)) {}

  RankId rank() const override { return rank_->ranks->rank(); }
  int size() const override { return rank_->ranks->size(); }

  absl::StatusOr<std::unique_ptr<SendEnd>> OpenSend(const ChannelSpec& spec) override {
    ASSIGN_OR_RETURN(ShmChannel channel, rank_->Open(spec, ChannelEnd::kSend));
    return std::make_unique<ShmSendEnd>(rank_, std::move(channel));
  }

  absl::StatusOr<std::unique_ptr<ReceiveEnd>> OpenReceive(const ChannelSpec& spec) override {
    ASSIGN_OR_RETURN(ShmChannel channel, rank_->Open(spec, ChannelEnd::kReceive));
    return std::make_unique<ShmReceiveEnd>(rank_, std::move(channel));
  }

  void Progress() override {}
  void Fail(const absl::Status& status) override { rank_->ranks->Fail(status); }
  absl::Status failure() const override {
    return rank_->ranks->failed() ? rank_->ranks->failure().status() : absl::OkStatus();
  }

 private:
  const std::shared_ptr<Rank> rank_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeShmTransport(const ShmWorld& world) {
  ASSIGN_OR_RETURN(std::unique_ptr<ShmRanks> ranks, MeetRanks(world));
  return std::make_unique<ShmTransport>(std::make_shared<Rank>(std::move(ranks), world.start_deadline));
}

}  // namespace pipeloom
