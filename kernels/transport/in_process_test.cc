#include "kernels/transport/in_process.h"

#include <chrono>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipeloom {
namespace {

// What only this transport promises; tests/transport has what all of them do.

const Deadline kPast = Deadline::min();

ChannelSpec Spec(int tag) { return {RankId(0), RankId(1), ChannelTag(tag), "h", 24, 2}; }

TEST(InProcessTest, SenderWritesIntoTheReceiversSlotWhichIsKnownBeforeTheReceiverOpens) {
  auto ranks = MakeInProcessTransports(2);
  auto send = ranks[0]->OpenSend(Spec(0));
  ASSERT_TRUE(send.ok()) << send.status();
  char* const first = (*send)->Slot(0);
  char* const second = (*send)->Slot(1);
  auto receive = ranks[1]->OpenReceive(Spec(0));
  ASSERT_TRUE(receive.ok()) << receive.status();
  EXPECT_EQ((*receive)->Slot(0), first);
  EXPECT_EQ((*receive)->Slot(1), second);
  EXPECT_NE(first, second);
}

TEST(InProcessTest, SendsBeforeTheReceiverOpens) {
  auto ranks = MakeInProcessTransports(2);
  auto send = ranks[0]->OpenSend(Spec(0));
  ASSERT_TRUE(send.ok()) << send.status();
  for (int k = 0; k < 2; ++k) {
    ASSERT_TRUE((*send)->Acquire(k, kPast).ok());
    std::memset((*send)->Slot(k), 'a' + k, 24);
    (*send)->Send(k);
  }
  auto receive = ranks[1]->OpenReceive(Spec(0));
  ASSERT_TRUE(receive.ok()) << receive.status();
  ASSERT_TRUE((*receive)->Receive(1, kPast).ok());
  EXPECT_EQ(std::string((*receive)->Slot(0), 24), std::string(24, 'a'));
  EXPECT_EQ(std::string((*receive)->Slot(1), 24), std::string(24, 'b'));
}

TEST(InProcessTest, WaitThatIsOverNeedsNoTime) {
  auto ranks = MakeInProcessTransports(2);
  auto send = ranks[0]->OpenSend(Spec(0));
  auto receive = ranks[1]->OpenReceive(Spec(0));
  ASSERT_TRUE(send.ok() && receive.ok());
  for (int k = 0; k < 10; ++k) {
    ASSERT_TRUE((*send)->Acquire(k, kPast).ok());
    (*send)->Send(k);
    ASSERT_TRUE((*receive)->Receive(k, kPast).ok());
    EXPECT_EQ((*receive)->Receive(k + 1, kPast).code(), absl::StatusCode::kDeadlineExceeded);
    (*receive)->Release(k);
  }
}

TEST(InProcessTest, ChannelsOfTwoRanksAreIndependent) {
  auto ranks = MakeInProcessTransports(2);
  auto full = ranks[0]->OpenSend(Spec(0));
  auto other = ranks[0]->OpenSend(Spec(1));
  auto receive_other = ranks[1]->OpenReceive(Spec(1));
  ASSERT_TRUE(full.ok() && other.ok() && receive_other.ok());
  (*full)->Send(0);
  (*full)->Send(1);
  EXPECT_EQ((*full)->Acquire(2, kPast).code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE((*other)->Acquire(0, kPast).ok());
  (*other)->Send(0);
  EXPECT_TRUE((*receive_other)->Receive(0, kPast).ok());
}

TEST(InProcessTest, EndsOutliveTheTransports) {
  auto ranks = MakeInProcessTransports(2);
  auto send = ranks[0]->OpenSend(Spec(0));
  auto receive = ranks[1]->OpenReceive(Spec(0));
  ASSERT_TRUE(send.ok() && receive.ok());
  ranks.clear();
  std::memset((*send)->Slot(0), 'z', 24);
  (*send)->Send(0);
  send->reset();
  ASSERT_TRUE((*receive)->Receive(0, kPast).ok());
  EXPECT_EQ(std::string((*receive)->Slot(0), 24), std::string(24, 'z'));
}

TEST(InProcessDeathTest, MessageOutOfOrderIsOurOwnError) {
  auto ranks = MakeInProcessTransports(2);
  auto send = ranks[0]->OpenSend(Spec(0));
  auto receive = ranks[1]->OpenReceive(Spec(0));
  ASSERT_TRUE(send.ok() && receive.ok());
  EXPECT_DEATH((*send)->Send(1), "channel 'h' .rank 0 -> rank 1, tag 0.: message 1 sent where 0 is next");
  EXPECT_DEATH((*receive)->Release(0), "message 0 released, with 0 released before and 0 sent");
}

}  // namespace
}  // namespace pipeloom
