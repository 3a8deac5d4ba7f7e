// Messages arrive: whole, in order, on their own channel, from and to every rank.

#include <sched.h>

#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "tests/transport/conformance.h"

namespace pipeloom {
namespace {

// A token goes round `rounds` times; each rank hands on what it got, so a lost or doubled message stops the ring.
absl::Status PassAround(Transport& transport, int rounds) {
  const int size = transport.size();
  const RankId next((transport.rank().value() + 1) % size);
  const RankId previous((transport.rank().value() + size - 1) % size);
  const ChannelSpec to = Spec(transport.rank(), next, 0, sizeof(int64_t));
  const ChannelSpec from = Spec(previous, transport.rank(), 0, sizeof(int64_t));
  ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(to));
  ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(from));
  const bool starts = transport.rank() == RankId(0);
  for (int64_t k = 0; k < rounds; ++k) {
    int64_t token = k * size - 1;
    if (!starts) {
      RETURN_IF_ERROR(receive->Receive(k, Soon()));
      token = *reinterpret_cast<const int64_t*>(receive->Slot(k));
      receive->Release(k);
    }
    RETURN_IF_ERROR(send->Acquire(k, Soon()));
    *reinterpret_cast<int64_t*>(send->Slot(k)) = token + 1;
    send->Send(k);
    if (starts) {
      RETURN_IF_ERROR(receive->Receive(k, Soon()));
      token = *reinterpret_cast<const int64_t*>(receive->Slot(k));
      receive->Release(k);
      if (token != (k + 1) * size - 1) return absl::DataLossError(absl::StrCat("round ", k, " ended with ", token));
    }
  }
  return absl::OkStatus();
}

TEST_P(TransportTest, Ring) {
  RunRanksOk([](Transport& transport) { return PassAround(transport, 100); });
}

TEST_P(TransportTest, RanksThatShareTwoCoresMakeProgress) {
  RunRanksOk([](Transport& transport) {
    cpu_set_t allowed, two;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    CPU_ZERO(&two);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &two);
    }
    if (sched_setaffinity(0, sizeof(two), &two) != 0) return absl::InternalError("no affinity");
    return PassAround(transport, 200);
  });
}

// Every rank sends to every rank (itself too), then receives from every rank.
absl::Status TalkToAll(Transport& transport, int rounds) {
  std::vector<std::pair<ChannelSpec, std::unique_ptr<SendEnd>>> sends;
  std::vector<std::pair<ChannelSpec, std::unique_ptr<ReceiveEnd>>> receives;
  for (int source = 0; source < transport.size(); ++source) {
    for (int destination = 0; destination < transport.size(); ++destination) {
      const ChannelSpec spec = Spec(RankId(source), RankId(destination), 7, 129);
      if (spec.source == transport.rank()) {
        ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> end, transport.OpenSend(spec));
        sends.emplace_back(spec, std::move(end));
      }
      if (spec.destination == transport.rank()) {
        ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> end, transport.OpenReceive(spec));
        receives.emplace_back(spec, std::move(end));
      }
    }
  }
  for (int64_t k = 0; k < rounds; ++k) {
    for (auto& [spec, end] : sends) RETURN_IF_ERROR(SendMessage(*end, spec, k));
    for (auto& [spec, end] : receives) RETURN_IF_ERROR(ReceiveMessage(*end, spec, k));
  }
  return absl::OkStatus();
}

TEST_P(TransportTest, AllPairs) {
  RunRanksOk([](Transport& transport) { return TalkToAll(transport, 20); });
}

// Two ranks send to each other at once, on two channels a direction.
absl::Status CrissCross(Transport& transport, RankId other) {
  const RankId self = transport.rank();
  const ChannelSpec to[] = {Spec(self, other, 1, 300, 2), Spec(self, other, 2, 300, 2)};
  const ChannelSpec from[] = {Spec(other, self, 1, 300, 2), Spec(other, self, 2, 300, 2)};
  std::unique_ptr<SendEnd> sends[2];
  std::unique_ptr<ReceiveEnd> receives[2];
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(sends[i], transport.OpenSend(to[i]));
    ASSIGN_OR_RETURN(receives[i], transport.OpenReceive(from[i]));
  }
  for (int64_t k = 0; k < 100; ++k) {
    for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(SendMessage(*sends[i], to[i], k));
    transport.Progress();
    for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(ReceiveMessage(*receives[i], from[i], k));
  }
  return absl::OkStatus();
}

TEST_P(TransportPairTest, CrissCross) {
  RunRanksOk([this](Transport& transport) {
    if (transport.rank() == RankId(0)) return CrissCross(transport, last());
    if (transport.rank() == last()) return CrissCross(transport, RankId(0));
    return absl::OkStatus();
  });
}

TEST_P(TransportPairTest, ManyMessagesOverFewSlotsKeepContentAndOrder) {
  std::vector<ChannelSpec> specs;
  for (int64_t bytes : {0, 1, 3, 4096}) {
    for (int slots = 1; slots <= 3; ++slots) {
      specs.push_back(Spec(RankId(0), last(), static_cast<int>(specs.size()), bytes, slots));
    }
  }
  RunRanksOk([&](Transport& transport) { return Stream(transport, specs, 200); });
}

TEST_P(TransportPairTest, LargeOddMessages) {
  std::vector<ChannelSpec> specs;
  for (int slots = 1; slots <= 3; ++slots) specs.push_back(Spec(RankId(0), last(), slots, (1 << 20) + 1, slots));
  RunRanksOk([&](Transport& transport) { return Stream(transport, specs, 8); });
}

// The sender runs ahead as far as it may, and no farther: while the receiver keeps message 0, only `slots` messages are
// sent, and slot 0 stays as it was.
TEST_P(TransportPairTest, SenderUsesItsCreditButNeverOvertakesIt) {
  constexpr int kSlots = 3;
  constexpr int64_t kCount = 20;
  const ChannelSpec spec = Spec(RankId(0), last(), 0, 1000, kSlots);
  std::atomic<int64_t>& sent = Counter(0);
  std::atomic<int64_t>& released = Counter(1);
  const auto send_all = [&](Transport& transport) -> absl::Status {
    ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(spec));
    for (int64_t k = 0; k < kCount; ++k) {
      RETURN_IF_ERROR(send->Acquire(k, Soon()));
      if (k - released.load() >= kSlots) return absl::InternalError(absl::StrCat("no credit for message ", k));
      FillMessage(spec, k, send->Slot(k));
      send->Send(k);
      sent.store(k + 1);
    }
    return absl::OkStatus();
  };
  const auto receive_all = [&](Transport& transport) -> absl::Status {
    ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(spec));
    // For its first messages the sender needs nothing from this rank but, at most, progress.
    ProgressUntil(transport, [&] { return sent.load() >= kSlots; });
    for (int64_t k = 0; k < kCount; ++k) {
      RETURN_IF_ERROR(receive->Receive(k, Soon()));
      if (k % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (sent.load() > k + kSlots) return absl::InternalError(absl::StrCat(sent.load(), " sent, ", k, " released"));
      RETURN_IF_ERROR(CheckMessage(spec, k, receive->Slot(k)));
      released.store(k + 1);
      receive->Release(k);
    }
    return absl::OkStatus();
  };
  RunRanksOk([&](Transport& transport) {
    if (transport.rank() == RankId(0)) return send_all(transport);
    if (transport.rank() == last()) return receive_all(transport);
    return absl::OkStatus();
  });
  EXPECT_EQ(sent.load(), kCount);
}

// The consumer of several micro-batches at once reads their slots as one matrix, and then releases them all.
TEST_P(TransportPairTest, OneReleaseGivesBackAllSlotsUpToIt) {
  constexpr int kSlots = 4;
  constexpr int64_t kGroups = 25;
  const ChannelSpec spec = Spec(RankId(0), last(), 0, 68, kSlots);
  const auto receive_groups = [&](Transport& transport) -> absl::Status {
    ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(spec));
    for (int64_t group = 0; group < kGroups; ++group) {
      const int64_t first = group * kSlots;
      RETURN_IF_ERROR(receive->Receive(first + kSlots - 1, Soon()));
      const char* matrix = receive->Slot(first);
      for (int row = 0; row < kSlots; ++row) {
        RETURN_IF_ERROR(CheckMessage(spec, first + row, matrix + row * spec.bytes));
      }
      receive->Release(first + kSlots - 1);
    }
    return absl::OkStatus();
  };
  RunRanksOk([&](Transport& transport) {
    if (transport.rank() == last()) return receive_groups(transport);
    return Stream(transport, {spec}, kGroups * kSlots);
  });
}

// Rounds that do not divide into the slots begin at slot 0 each: the last slots of a round are skipped, or those of the
// next round's beginning were used more than once.
TEST_P(TransportPairTest, RoundsBeginAtTheFirstSlot) {
  std::vector<ChannelSpec> specs;
  for (int slots = 1; slots <= 4; ++slots) {
    for (int64_t round = 1; round <= 7; ++round) {
      specs.push_back(Spec(RankId(0), last(), static_cast<int>(specs.size()), 40, slots));
      specs.back().round = round;
    }
  }
  RunRanksOk([&](Transport& transport) { return Stream(transport, specs, 50); });
}

// The number of the message that message k would overwrite, found by going back one by one; -1 where there is none.
int64_t Overwritten(int64_t k, int64_t round, int slots) {
  for (int64_t earlier = k - 1; earlier >= 0; --earlier) {
    if (earlier % round % slots == k % round % slots) return earlier;
  }
  return -1;
}

// With rounds too the sender has exactly the credit of the message that it would overwrite: it waits where that one is
// not released, and does not where it is.
TEST_P(TransportPairTest, CreditOverRounds) {
  constexpr int64_t kCount = 12;
  int counters = 0;
  for (int64_t round : {1, 2, 4, 5}) {
    ChannelSpec spec = Spec(RankId(0), last(), static_cast<int>(round), 40, 3);
    spec.round = round;
    std::atomic<int64_t>& sent = Counter(counters++);
    std::atomic<int64_t>& waited = Counter(counters++);  // messages for which the sender has seen that it must wait
    RunRanksOk([&](Transport& transport) -> absl::Status {
      if (transport.rank() == spec.source) {
        ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(spec));
        int64_t known = -1;  // every message up to it was overwritten with leave, so is released
        for (int64_t k = 0; k < kCount; ++k) {
          const int64_t overwritten = Overwritten(k, round, spec.slots);
          if (overwritten > known) {
            const absl::Status early = send->Acquire(k, After(std::chrono::milliseconds(1)));
            if (!absl::IsDeadlineExceeded(early)) return absl::InternalError(absl::StrCat("no wait for message ", k));
            known = overwritten;
            waited.store(overwritten + 1);
          }
          RETURN_IF_ERROR(SendMessage(*send, spec, k));
          sent.store(k + 1);
        }
        waited.store(kCount);
      } else if (transport.rank() == spec.destination) {
        ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(spec));
        for (int64_t k = 0; k < kCount; ++k) {
          ProgressUntil(transport, [&] { return waited.load() > k; });
          RETURN_IF_ERROR(ReceiveMessage(*receive, spec, k));
        }
      }
      return absl::OkStatus();
    });
    EXPECT_EQ(sent.load(), kCount);
  }
}

}  // namespace
}  // namespace pipeloom
