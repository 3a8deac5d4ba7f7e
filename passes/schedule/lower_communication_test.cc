#include "passes/schedule/lower_communication.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/schedule/schedule_table.h"
#include "passes/schedule/test_edges.h"

namespace pipeloom {
namespace {

using ::testing::HasSubstr;

std::string Lowered(absl::string_view grid, const std::vector<CommunicationEdge>& edges) {
  const absl::StatusOr<Schedule> lowered = LowerCommunication(*ParseSchedule(grid), edges);
  return lowered.ok() ? ScheduleToString(*lowered) : std::string(lowered.status().message());
}

TEST(LowerCommunication, TwoRanks1f1b) {
  EXPECT_EQ(Lowered("0F0 0F1 0BW0 0F2 0BW1 0BW2\n"
                    "1F0 1BW0 1F1 1BW1 1F2 1BW2\n",
                    ChainEdges(2)),
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0BW0 0F2 0SEND_F2 0RECV_B1 0BW1 0RECV_B2 0BW2 REDUCE EXCHANGE STEP\n"
            "1RECV_F0 1F0 1B0 1SEND_B0 1W0 1RECV_F1 1F1 1B1 1SEND_B1 1W1 1RECV_F2 1F2 1B2 1SEND_B2 1W2 REDUCE EXCHANGE "
            "STEP\n");
}

TEST(LowerCommunication, TheGradientLeavesAfterB) {
  EXPECT_EQ(Lowered("0F0 0B0 0W0\n1F0 1B0 1W0\n", ChainEdges(2)),
            "0F0 0SEND_F0 0RECV_B0 0B0 0W0 REDUCE EXCHANGE STEP\n"
            "1RECV_F0 1F0 1B0 1SEND_B0 1W0 REDUCE EXCHANGE STEP\n");
}

TEST(LowerCommunication, AllEdgesOfAChunkShareItsActions) {
  EXPECT_EQ(Lowered("0F0 0BW0\n1F0 1BW0\n2F0 2BW0\n", {ForwardEdge(0, 1), ForwardEdge(0, 2), ForwardEdge(1, 2),
                                                       BackwardEdge(2, 0), BackwardEdge(2, 1), BackwardEdge(1, 0)}),
            "0F0 0SEND_F0 0RECV_B0 0BW0 REDUCE EXCHANGE STEP\n"
            "1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0 1W0 REDUCE EXCHANGE STEP\n"
            "2RECV_F0 2F0 2B0 2SEND_B0 2W0 REDUCE EXCHANGE STEP\n");
}

TEST(LowerCommunication, NoGradientWhereNoEdgeCarriesOne) {
  EXPECT_EQ(Lowered("0F0 0BW0\n1F0 1BW0\n", {ForwardEdge(0, 1)}),
            "0F0 0SEND_F0 0BW0 REDUCE EXCHANGE STEP\n"
            "1RECV_F0 1F0 1BW0 REDUCE EXCHANGE STEP\n");
}

TEST(LowerCommunication, ChunksOfOneRankSendToEachOther) {
  EXPECT_EQ(Lowered("0F0 1F0 1BW0 0BW0\n2F0 2BW0\n", ChainEdges(3)),
            "0F0 0SEND_F0 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0 1W0 0RECV_B0 0BW0 REDUCE EXCHANGE STEP\n"
            "2RECV_F0 2F0 2B0 2SEND_B0 2W0 REDUCE EXCHANGE STEP\n");
}

TEST(LowerCommunication, InferenceEndsInAnExchange) {
  EXPECT_EQ(Lowered("0F0 0F1\n1F0 1F1\n", ChainEdges(2)),
            "0F0 0SEND_F0 0F1 0SEND_F1 REDUCE EXCHANGE\n"
            "1RECV_F0 1F0 1RECV_F1 1F1 REDUCE EXCHANGE\n");
}

TEST(LowerCommunication, OneRankOnlyEndsTheStep) {
  EXPECT_EQ(Lowered("0F0 0BW0\n", {}), "0F0 0BW0 REDUCE EXCHANGE STEP\n");
}

TEST(LowerCommunication, RefusesASecondLowering) {
  EXPECT_THAT(Lowered("0F0 0BW0 REDUCE EXCHANGE STEP\n", {}), HasSubstr("has communication already"));
}

TEST(LowerCommunication, RefusesEdgesThatTheScheduleCannotHave) {
  EXPECT_EQ(Lowered("0F0\n1F0\n", {ForwardEdge(0, 2)}),
            "forward edge 0 -> 2: the schedule has chunks 0 to 1, and no chunk 2");
  EXPECT_EQ(Lowered("0F0\n1F0\n", {BackwardEdge(-1, 0)}),
            "backward edge -1 -> 0: the schedule has chunks 0 to 1, and no chunk -1");
  EXPECT_EQ(Lowered("0F0\n1F0\n", {ForwardEdge(1, 1)}), "forward edge 1 -> 1: a chunk needs no edge to itself");
}

}  // namespace
}  // namespace pipeloom
