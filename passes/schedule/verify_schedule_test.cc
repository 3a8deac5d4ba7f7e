#include "passes/schedule/verify_schedule.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/schedule/check_progress.h"
#include "passes/schedule/live_window.h"
#include "passes/schedule/lower_communication.h"
#include "passes/schedule/schedule_table.h"
#include "passes/schedule/slots_in_flight.h"
#include "passes/schedule/test_edges.h"

namespace pipeloom {
namespace {

using ::testing::HasSubstr;

constexpr ActionKind kF = ActionKind::kForward;
constexpr ActionKind kB = ActionKind::kBackwardInput;
constexpr ActionKind kW = ActionKind::kBackwardWeight;

std::string Verdict(absl::string_view grid, const std::vector<CommunicationEdge>& edges,
                    const std::vector<ChannelCredits>& credits = {}) {
  const absl::StatusOr<Schedule> schedule = ParseSchedule(grid);
  if (!schedule.ok()) return absl::StrCat("not parsed: ", schedule.status().message());
  const absl::Status status = VerifySchedule(*schedule, edges, credits);
  if (!status.ok() && status.code() != absl::StatusCode::kInvalidArgument) return status.ToString();
  return status.ok() ? "OK" : std::string(status.message());
}

// Edges that the schedule uses: a chain, and the gradients' way back where it trains.
std::vector<CommunicationEdge> EdgesOf(const Schedule& schedule) {
  std::vector<CommunicationEdge> edges = ChainEdges(schedule.chunks());
  if (Trains(schedule)) return edges;
  edges.erase(std::remove_if(edges.begin(), edges.end(), [](const CommunicationEdge& edge) { return !edge.forward; }),
              edges.end());
  return edges;
}

struct Release {
  ActionKind after;
  int group;
};

// How the receiver of `edge` may release its slots.
std::vector<Release> Releases(const Schedule& schedule, const CommunicationEdge& edge) {
  std::vector<Release> releases;
  if (edge.forward) releases.push_back({kF, 1});
  if (!Trains(schedule)) return releases;
  releases.push_back({kB, 1});
  for (int group : {1, 3}) releases.push_back({kW, group});
  return releases;
}

int Window(const Schedule& schedule, const CommunicationEdge& edge, const Release& release) {
  return LiveWindow(schedule.actions[schedule.rank_of(edge.destination).value()], edge.destination,
                    edge.forward ? kF : kB, release.after, release.group);
}

// Ranks 1 to 8, micro-batches 1 to 16, and 1 to 4 chunks a rank where the schedule has several, up to `most_chunks`.
template <typename Check>
void ForEachSchedule(int most_chunks, Check check) {
  for (const ScheduleInfo& info : ScheduleTable()) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (int chunks = 1; chunks <= 4 && chunks * ranks <= most_chunks; ++chunks) {
        for (int micro_batches = 1; micro_batches <= 16; ++micro_batches) {
          if (!info.precondition({ranks, micro_batches, chunks}).ok()) continue;
          SCOPED_TRACE(absl::StrCat(info.name, ", ", ranks, " ranks, ", micro_batches, " micro-batches, ", chunks,
                                    " chunks a rank"));
          check(*MakeSchedule(info.name, ranks, micro_batches, chunks));
        }
      }
    }
  }
}

constexpr int kAllChunks = 32;  // 8 ranks with 4 each
constexpr int kFewChunks = 8;   // for what takes time

TEST(VerifySchedule, AcceptsEveryNamedSchedule) {
  ForEachSchedule(kAllChunks, [](const Schedule& schedule) {
    const std::vector<CommunicationEdge> edges = EdgesOf(schedule);
    EXPECT_EQ(VerifySchedule(schedule, edges, {}), absl::OkStatus());
    EXPECT_EQ(VerifySchedule(*LowerCommunication(schedule, edges), edges, {}), absl::OkStatus());
  });
}

// Forward edges between all chunks, and their gradients where the schedule trains.
std::vector<CommunicationEdge> AllEdges(const Schedule& schedule) {
  std::vector<CommunicationEdge> edges;
  for (int from = 0; from < schedule.chunks(); ++from) {
    for (int to = from + 1; to < schedule.chunks(); ++to) {
      edges.push_back(ForwardEdge(from, to));
      if (Trains(schedule)) edges.push_back(BackwardEdge(to, from));
    }
  }
  return edges;
}

TEST(VerifySchedule, AcceptsEveryNamedScheduleWithEdgesThatSkipStages) {
  ForEachSchedule(kFewChunks, [](const Schedule& schedule) {
    EXPECT_EQ(VerifySchedule(schedule, AllEdges(schedule), {}), absl::OkStatus());
  });
}

TEST(VerifySchedule, SlotsInFlightAreEnoughForEdgesThatSkipStages) {
  for (const ChunkCosts& chunk : {ChunkCosts{1, 1, 1}, ChunkCosts{5, 1, 2}, ChunkCosts{1, 6, 3}}) {
    ForEachSchedule(kFewChunks, [&](const Schedule& schedule) {
      ScheduleCosts costs = ChainCosts(schedule.chunks(), chunk, 0);
      costs.edges.clear();
      for (const CommunicationEdge& edge : AllEdges(schedule)) costs.edges.push_back({edge, 0.5});
      const Simulation simulation = *Simulate(schedule, costs);
      for (size_t choice = 0; choice < 4; ++choice) {
        std::vector<ChannelCredits> credits;
        for (const CommunicationEdge& edge : AllEdges(schedule)) {
          const std::vector<Release> releases = Releases(schedule, edge);
          const Release release = releases[choice % releases.size()];
          credits.push_back(
              {edge, SlotsInFlight(simulation, edge, release.after, release.group), release.after, release.group});
        }
        EXPECT_EQ(VerifySchedule(schedule, AllEdges(schedule), credits), absl::OkStatus());
      }
    });
  }
}

// Rank 0 waits for rank 3 to use activations, and rank 3 for rank 0 to use gradients, each too far ahead.
TEST(VerifySchedule, TheLiveWindowIsTooFewForEdgesThatSkipStages) {
  const Schedule schedule = *MakeSchedule("1f1b", 4, 8, 1);
  const CommunicationEdge skip = ForwardEdge(0, 3);
  const CommunicationEdge back = BackwardEdge(3, 0);
  EXPECT_EQ(Window(schedule, skip, {kF, 1}), 1);
  EXPECT_EQ(Window(schedule, back, {kB, 1}), 1);
  const absl::Status status = VerifySchedule(schedule, AllEdges(schedule), {{skip, 1, kF, 1}, {back, 1, kB, 1}});
  EXPECT_THAT(status.message(), HasSubstr("deadlock under rendezvous sends"));
  EXPECT_THAT(status.message(), HasSubstr("waits for the RECV of message 2 of forward edge 0 -> 3 (slots: 1)"));
  EXPECT_THAT(status.message(), HasSubstr("waits for the RECV of message 0 of backward edge 3 -> 0 (slots: 1)"));
}

TEST(VerifySchedule, OneSlotIsEnoughWhereItIsReleasedAtOnce) {
  ForEachSchedule(kAllChunks, [](const Schedule& schedule) {
    std::vector<ChannelCredits> credits;
    const std::vector<CommunicationEdge> edges = EdgesOf(schedule);
    credits.reserve(edges.size());
    for (const CommunicationEdge& edge : edges) credits.push_back({edge, 1, edge.forward ? kF : kB, 1});
    const Schedule lowered = *LowerCommunication(schedule, edges);
    EXPECT_EQ(CheckProgress(lowered, edges, credits, SendModel::kRendezvous), absl::OkStatus());
    EXPECT_EQ(CheckProgress(lowered, edges, credits, SendModel::kBuffered), absl::OkStatus());
    EXPECT_EQ(VerifySchedule(lowered, edges, credits), absl::OkStatus());
  });
}

// Sends that complete only when received hang in no named schedule, however long the receiver then keeps the message.
TEST(VerifySchedule, RendezvousNeedsOneSlotBetweenNeighbours) {
  ForEachSchedule(kAllChunks, [](const Schedule& schedule) {
    const std::vector<CommunicationEdge> edges = EdgesOf(schedule);
    std::vector<ChannelCredits> credits;
    credits.reserve(edges.size());
    for (const CommunicationEdge& edge : edges) {
      credits.push_back({edge, 1, Releases(schedule, edge).back().after, schedule.micro_batches});
    }
    EXPECT_EQ(CheckProgress(*LowerCommunication(schedule, edges), edges, credits, SendModel::kRendezvous),
              absl::OkStatus());
  });
}

// Each edge on its own: legal from the live window of the receiver on, a deadlock below it. (With several chunks a rank
// a sender runs ahead of a receiver that is busy with another chunk: SlotsInFlight says by how much.)
TEST(VerifySchedule, SlotsAreEnoughFromTheLiveWindowOn) {
  int deadlocks = 0;
  ForEachSchedule(kFewChunks, [&](const Schedule& schedule) {
    if (schedule.chunks() > schedule.ranks()) return;
    const Schedule lowered = *LowerCommunication(schedule, EdgesOf(schedule));
    const std::vector<CommunicationEdge> edges = EdgesOf(schedule);
    for (const CommunicationEdge& edge : edges) {
      for (const Release& release : Releases(schedule, edge)) {
        const int window = Window(schedule, edge, release);
        for (int slots : {1, window - 1, window, schedule.micro_batches}) {
          if (slots < 1) continue;
          const absl::Status status = VerifySchedule(lowered, edges, {{edge, slots, release.after, release.group}});
          EXPECT_EQ(status.ok(), slots >= window) << status;
          if (status.ok()) continue;
          ++deadlocks;
          EXPECT_THAT(status.message(), HasSubstr("deadlock under buffered sends"));
          EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("a free slot of ", EdgeToString(edge))));
        }
      }
    }
  });
  EXPECT_GT(deadlocks, 1000);
}

TEST(VerifySchedule, AllEdgesMayHaveTheirLeastSlotsAtOnce) {
  ForEachSchedule(kAllChunks, [](const Schedule& schedule) {
    if (schedule.chunks() > schedule.ranks()) return;
    const std::vector<CommunicationEdge> edges = EdgesOf(schedule);
    std::vector<ChannelCredits> credits;
    for (const CommunicationEdge& edge : edges) {
      const Release release = Releases(schedule, edge).back();
      credits.push_back({edge, Window(schedule, edge, release), release.after, release.group});
    }
    EXPECT_EQ(VerifySchedule(schedule, edges, credits), absl::OkStatus());
  });
}

TEST(VerifySchedule, TheLeastSlotsOf1f1bAreTheRanksThatFollow) {
  for (int p = 2; p <= 8; ++p) {
    for (int m = 1; m <= 16; ++m) {
      const Schedule schedule = *MakeSchedule("1f1b", p, m, 1);
      for (int r = 0; r + 1 < p; ++r) {
        for (int slots = 1; slots <= m; ++slots) {
          const absl::Status status = VerifySchedule(schedule, ChainEdges(p), {{ForwardEdge(r, r + 1), slots, kB, 1}});
          EXPECT_EQ(status.ok(), slots >= std::min(p - 1 - r, m)) << p << " " << m << " " << r << " " << status;
        }
      }
    }
  }
}

TEST(VerifySchedule, AcceptsASplitBackwardOutOfOrderInB) { EXPECT_EQ(Verdict("0F0 0F1 0B1 0B0 0W0 0W1\n", {}), "OK"); }

TEST(VerifySchedule, RefusesComputeThatIsNotThereOnce) {
  const std::vector<CommunicationEdge> chain = ChainEdges(2);
  EXPECT_EQ(Verdict("0F0 0F1 0BW0 0BW1\n1F0 1BW0 1F1\n", chain),
            "rank 1, 1BW1: missing; every chunk runs every micro-batch");
  EXPECT_EQ(Verdict("0F0 0BW0 0BW1\n1F0 1BW0 1F1 1BW1\n", chain),
            "rank 0, 0F1: missing; every chunk runs every micro-batch");
  EXPECT_EQ(Verdict("0F0 0F1 0BW0 0F1 0BW1\n1F0 1BW0 1F1 1BW1\n", chain),
            "rank 0, 0F1: stands twice, as actions 1 and 3; every action runs once");
  EXPECT_EQ(Verdict("0F0 0B0 0W0 0BW0\n", {}), "rank 0, 0BW0: computes what a B or W of the same micro-batch computes");
  EXPECT_EQ(Verdict("0F0 0B0\n", {}), "rank 0, 0W0: missing, though its B is there");
  EXPECT_EQ(Verdict("0F0 0W0\n", {}), "rank 0, 0B0: missing, though its W is there");
}

TEST(VerifySchedule, RefusesComputeOutOfOrder) {
  EXPECT_EQ(Verdict("0BW0 0F0\n", {}), "rank 0, 0BW0: stands before 0F0; backward uses what forward saved");
  EXPECT_EQ(Verdict("0F0 0W0 0B0\n", {}),
            "rank 0, 0W0: stands before 0B0; weight gradients use the activation gradients");
  EXPECT_EQ(Verdict("0F0 0F1 0BW1 0BW0\n1F0 1F1 1BW0 1BW1\n", ChainEdges(2)),
            "rank 0, 0BW1: stands before 0BW0; weight gradients accumulate in micro-batch order");
  EXPECT_EQ(Verdict("0F0 0F1 0B0 0B1 0W1 0W0\n", {}),
            "rank 0, 0W1: stands before 0W0; weight gradients accumulate in micro-batch order");
}

TEST(VerifySchedule, RefusesABrokenEdgeWithinARank) {
  EXPECT_EQ(Verdict("1F0 0F0 1BW0 0BW0\n", ChainEdges(2)),
            "rank 0, 1F0: stands before 0F0; forward edge 0 -> 1 brings it values");
  EXPECT_EQ(Verdict("0F0 1F0 0BW0 1BW0\n", ChainEdges(2)),
            "rank 0, 0BW0: stands before 1BW0; backward edge 1 -> 0 brings it values");
}

TEST(VerifySchedule, RefusesWhatTheScheduleDoesNotHave) {
  Schedule schedule = *MakeSchedule("1f1b", 2, 2, 1);
  schedule.micro_batches = 1;
  EXPECT_EQ(VerifySchedule(schedule, {}, {}).message(),
            "rank 0, 0F1: the schedule has 1 micro-batches, numbered from 0");
  schedule = *MakeSchedule("1f1b", 2, 2, 1);
  schedule.placement.pop_back();
  EXPECT_EQ(VerifySchedule(schedule, {}, {}).message(), "rank 1, 1F0: the schedule has 1 chunks, numbered from 0");
  schedule = *MakeSchedule("1f1b", 2, 2, 1);
  std::swap(schedule.placement[0], schedule.placement[1]);
  EXPECT_EQ(VerifySchedule(schedule, {}, {}).message(), "rank 0, 0F0: chunk 0 is placed on rank 1");
  schedule.placement[0] = RankId(2);
  EXPECT_THAT(VerifySchedule(schedule, {}, {}).message(), HasSubstr("chunk 0 is placed on rank 2, but"));
  EXPECT_THAT(VerifySchedule(Schedule(), {}, {}).message(), HasSubstr("0 chunks and 0 micro-batches"));
  EXPECT_THAT(Verdict("0F0 0BW0\n", {ForwardEdge(0, 1)}), HasSubstr("no chunk 1"));
}

TEST(VerifySchedule, RefusesMissingAndNeedlessMessages) {
  const std::vector<CommunicationEdge> edges = {ForwardEdge(0, 1)};
  EXPECT_EQ(Verdict("0F0 REDUCE EXCHANGE\n1RECV_F0 1F0 REDUCE EXCHANGE\n", edges),
            "rank 0, 0SEND_F0: missing; a forward edge to another chunk");
  EXPECT_EQ(Verdict("0F0 0SEND_F0 REDUCE EXCHANGE\n1F0 REDUCE EXCHANGE\n", edges),
            "rank 1, 1RECV_F0: missing; a forward edge from another chunk");
  EXPECT_EQ(Verdict("0F0 0SEND_F0 REDUCE EXCHANGE\n1RECV_F0 1F0 1SEND_F0 REDUCE EXCHANGE\n", edges),
            "rank 1, 1SEND_F0: stands without a forward edge to another chunk");
  EXPECT_EQ(Verdict("0F0 0SEND_F0 0BW0 0SEND_B0 REDUCE EXCHANGE STEP\n1RECV_F0 1F0 1BW0 REDUCE EXCHANGE STEP\n", edges),
            "rank 0, 0SEND_B0: stands without a backward edge to another chunk");
}

TEST(VerifySchedule, RefusesMessagesOutOfOrder) {
  const std::vector<CommunicationEdge> edges = {ForwardEdge(0, 1)};
  EXPECT_EQ(Verdict("0SEND_F0 0F0 REDUCE EXCHANGE\n1RECV_F0 1F0 REDUCE EXCHANGE\n", edges),
            "rank 0, 0SEND_F0: stands before 0F0, which makes its values");
  EXPECT_EQ(Verdict("0F0 0SEND_F0 REDUCE EXCHANGE\n1F0 1RECV_F0 REDUCE EXCHANGE\n", edges),
            "rank 1, 1RECV_F0: stands after 1F0, which uses its values");
}

TEST(VerifySchedule, RefusesAnotherStepEnd) {
  EXPECT_EQ(Verdict("0F0 0BW0 REDUCE STEP\n", {}),
            "rank 0, EXCHANGE: missing at the step's end, where every rank has it");
  EXPECT_EQ(Verdict("0F0 0BW0 REDUCE EXCHANGE STEP 0F1 0BW1\n", {}),
            "rank 0, STEP: missing at the step's end, where every rank has it");
  EXPECT_EQ(Verdict("0F0 REDUCE 0BW0 REDUCE EXCHANGE STEP\n", {}),
            "rank 0, REDUCE: stands before the step's end, or not in its order");
  EXPECT_EQ(Verdict("0F0 STEP\n", {}), "rank 0, EXCHANGE: missing at the step's end, where every rank has it");
}

TEST(VerifySchedule, RefusesReceivesInAnotherOrderThanTheSends) {
  EXPECT_EQ(Verdict("0F0 0F1\n1F1 1F0\n", {ForwardEdge(0, 1)}),
            "rank 1, 1RECV_F1: is receive 0 of forward edge 0 -> 1, whose send 0 is 0SEND_F0; the k-th receive must "
            "match the k-th send, since a channel keeps their order");
}

// Two chunks a rank: what rank 0 sends first, rank 1 receives last. Messages are told apart by their edge.
TEST(VerifySchedule, ChunksMayReceiveInAnotherOrderThanOthersSend) {
  EXPECT_EQ(Verdict("0F0 1F0\n3F0 2F0\n", {ForwardEdge(0, 2), ForwardEdge(1, 3)}), "OK");
}

// What one rank sends to another, or receives from it, in order.
std::vector<std::string> MessagesBetween(const Schedule& lowered, int source, int destination, bool sends) {
  std::vector<std::string> messages;
  for (const Action& action : lowered.actions[sends ? source : destination]) {
    for (const CommunicationEdge& edge : EdgesOf(lowered)) {
      const DirectionKinds kinds = KindsOf(edge.forward);
      if (action.kind != (sends ? kinds.send : kinds.receive)) continue;
      if (action.chunk != (sends ? edge.source : edge.destination)) continue;
      if (lowered.rank_of(edge.source) != RankId(source) || lowered.rank_of(edge.destination) != RankId(destination)) {
        continue;
      }
      messages.push_back(absl::StrCat(EdgeToString(edge), " ", action.micro_batch.value()));
    }
  }
  return messages;
}

// So that a transport whose messages carry no tag can carry the named schedules too.
TEST(VerifySchedule, BetweenTwoRanksTheKthSendOfAChainIsTheKthReceive) {
  ForEachSchedule(kAllChunks, [](const Schedule& schedule) {
    const Schedule lowered = *LowerCommunication(schedule, EdgesOf(schedule));
    for (int rank = 0; rank < lowered.ranks(); ++rank) {
      for (int other : {(rank + 1) % lowered.ranks(), (rank + lowered.ranks() - 1) % lowered.ranks()}) {
        if (other == rank) continue;
        EXPECT_EQ(MessagesBetween(lowered, rank, other, /*sends=*/true),
                  MessagesBetween(lowered, rank, other, /*sends=*/false));
      }
    }
  });
}

TEST(VerifySchedule, RefusesCrissCrossReceives) {
  // Each rank first waits for what the other sends last.
  EXPECT_EQ(Verdict("3F0 0F0\n2F0 1F0\n", {ForwardEdge(0, 2), ForwardEdge(1, 3)}),
            "deadlock under rendezvous sends\n"
            "  rank 0 at 3RECV_F0 (action 0 of 6) waits for message 0 of forward edge 1 -> 3\n"
            "  rank 1 at 2RECV_F0 (action 0 of 6) waits for message 0 of forward edge 0 -> 2");
}

TEST(VerifySchedule, NamesTheCreditThatIsMissing) {
  EXPECT_EQ(
      Verdict("0F0 0F1 0BW0 0BW1\n1F0 1F1 1BW0 1BW1\n", ChainEdges(2), {{ForwardEdge(0, 1), 1, kW, 2}}),
      "deadlock under buffered sends\n"
      "  rank 0 at 0F1 (action 2 of 11) waits for a free slot of forward edge 0 -> 1 (slots: 1, released after W in "
      "groups of 2); give it more slots, or release them earlier\n"
      "  rank 1 at 1RECV_F1 (action 2 of 13) waits for message 1 of forward edge 0 -> 1");
}

TEST(VerifySchedule, RefusesAnOrderThatHangsUnderRendezvousSends) {
  // Rank 1 does not receive from chunk 0 until chunk 4 has run, which needs chunk 2 on rank 0: after 0F1, which
  // cannot be made while the message of 0F0 waits in rank 0's only place.
  const std::vector<CommunicationEdge> edges = {ForwardEdge(0, 1), ForwardEdge(2, 3), ForwardEdge(3, 4)};
  const absl::string_view hanging = "0F0 0F1 2F0 2F1\n4F0 4F1 1F0 1F1\n3F0 3F1\n";
  EXPECT_EQ(Verdict(hanging, edges, {{edges[0], 1, kF, 1}}),
            "deadlock under rendezvous sends\n"
            "  rank 0 at 0F1 (action 2 of 10) waits for the RECV of message 0 of forward edge 0 -> 1 (slots: 1)\n"
            "  rank 1 at 4RECV_F0 (action 0 of 10) waits for message 0 of forward edge 3 -> 4\n"
            "  rank 2 at 3RECV_F0 (action 0 of 8) waits for message 0 of forward edge 2 -> 3");
  EXPECT_EQ(Verdict(hanging, edges, {{edges[0], 2, kF, 1}}), "OK");
  EXPECT_EQ(Verdict("0F0 2F0 0F1 2F1\n4F0 1F0 4F1 1F1\n3F0 3F1\n", edges, {{edges[0], 1, kF, 1}}), "OK");
}

TEST(VerifySchedule, RefusesToMakeAMessageBeforeTheLastOneIsSent) {
  EXPECT_THAT(Verdict("0F0 0F1 0SEND_F0 0SEND_F1 REDUCE EXCHANGE\n1RECV_F0 1F0 1RECV_F1 1F1 REDUCE EXCHANGE\n",
                      {ForwardEdge(0, 1)}),
              HasSubstr("rank 0 at 0F1 (action 1 of 6) waits for its own send of message 0 of forward edge 0 -> 1"));
}

TEST(VerifySchedule, RefusesCreditsThatMeanNothing) {
  const absl::string_view grid = "0F0 0BW0\n1F0 1BW0\n";
  EXPECT_EQ(Verdict(grid, ChainEdges(2), {{ForwardEdge(0, 1), 0, kF, 1}}),
            "forward edge 0 -> 1 with 0 slots, released in groups of 1; give at least 1 of each");
  EXPECT_EQ(Verdict(grid, ChainEdges(2), {{ForwardEdge(0, 1), 1, kW, 0}}),
            "forward edge 0 -> 1 with 1 slots, released in groups of 0; give at least 1 of each");
  EXPECT_EQ(Verdict(grid, {ForwardEdge(0, 1)}, {{BackwardEdge(1, 0), 1, kB, 1}}),
            "credits for backward edge 1 -> 0, which is not among the edges");
  EXPECT_THAT(Verdict(grid, ChainEdges(2), {{BackwardEdge(1, 0), 1, kF, 1}}),
              HasSubstr("backward edge 1 -> 0: slots released after F, which does not follow their use"));
  EXPECT_THAT(Verdict(grid, ChainEdges(2), {{ForwardEdge(0, 1), 1, ActionKind::kStep, 1}}),
              HasSubstr("slots released after STEP"));
  EXPECT_THAT(Verdict("0F0\n1F0\n", {ForwardEdge(0, 1)}, {{ForwardEdge(0, 1), 1, kW, 1}}),
              HasSubstr("slots released after W"));
}

TEST(VerifySchedule, RefusesEveryScheduleWithOneActionLessOrDouble) {
  for (const ScheduleInfo& info : ScheduleTable()) {
    const Schedule compute = *MakeSchedule(info.name, 3, 4, 1);
    const std::vector<CommunicationEdge> edges = EdgesOf(compute);
    const Schedule lowered = *LowerCommunication(compute, edges);
    for (int rank = 0; rank < lowered.ranks(); ++rank) {
      for (int position = 0; position < static_cast<int>(lowered.actions[rank].size()); ++position) {
        Schedule less = lowered;
        less.actions[rank].erase(less.actions[rank].begin() + position);
        EXPECT_FALSE(VerifySchedule(less, edges, {}).ok()) << ScheduleToString(less);
        Schedule doubled = lowered;
        doubled.actions[rank].insert(doubled.actions[rank].begin() + position, lowered.actions[rank][position]);
        EXPECT_FALSE(VerifySchedule(doubled, edges, {}).ok()) << ScheduleToString(doubled);
      }
    }
  }
}

}  // namespace
}  // namespace pipeloom
