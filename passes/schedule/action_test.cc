#include "passes/schedule/action.h"

#include <climits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipeloom {
namespace {

using ::testing::HasSubstr;

TEST(ActionText, IsAsTheDesignSays) {
  EXPECT_EQ(ActionToString({ActionKind::kForward, ChunkId(2), MicroBatchId(0)}), "2F0");
  EXPECT_EQ(ActionToString({ActionKind::kBackwardInput, ChunkId(1), MicroBatchId(12)}), "1B12");
  EXPECT_EQ(ActionToString({ActionKind::kBackwardWeight, ChunkId(10), MicroBatchId(4)}), "10W4");
  EXPECT_EQ(ActionToString({ActionKind::kBackward, ChunkId(0), MicroBatchId(3)}), "0BW3");
  EXPECT_EQ(ActionToString({ActionKind::kSendForward, ChunkId(0), MicroBatchId(1)}), "0SEND_F1");
  EXPECT_EQ(ActionToString({ActionKind::kReceiveForward, ChunkId(1), MicroBatchId(1)}), "1RECV_F1");
  EXPECT_EQ(ActionToString({ActionKind::kSendBackward, ChunkId(1), MicroBatchId(0)}), "1SEND_B0");
  EXPECT_EQ(ActionToString({ActionKind::kReceiveBackward, ChunkId(0), MicroBatchId(0)}), "0RECV_B0");
  EXPECT_EQ(ActionToString(Action{ActionKind::kReduce}), "REDUCE");
  EXPECT_EQ(ActionToString(Action{ActionKind::kExchange}), "EXCHANGE");
  EXPECT_EQ(ActionToString(Action{ActionKind::kStep}), "STEP");
}

TEST(ActionText, TableIsInTheOrderOfTheEnum) {
  int position = 0;
  for (const ActionKindInfo& info : kActionKinds) EXPECT_EQ(static_cast<int>(info.kind), position++);
  EXPECT_EQ(position, static_cast<int>(ActionKind::kStep) + 1);
}

TEST(ActionText, ParsesWhatItPrints) {
  for (const ActionKindInfo& info : kActionKinds) {
    for (int chunk : {0, 1, 10, 99, INT_MAX}) {
      for (int micro_batch : {0, 7, 100, INT_MAX}) {
        Action action{info.kind};
        if (info.per_micro_batch) action = {info.kind, ChunkId(chunk), MicroBatchId(micro_batch)};
        const absl::StatusOr<Action> parsed = ParseAction(ActionToString(action));
        ASSERT_TRUE(parsed.ok()) << parsed.status();
        EXPECT_EQ(*parsed, action);
      }
    }
  }
}

TEST(ActionText, RefusesWhatItNeverPrints) {
  for (const char* text : {"",
                           "F",
                           "0F",
                           "F0",
                           "0",
                           "00",
                           "0X1",
                           "0f1",
                           "00F1",
                           "0F01",
                           "-1F0",
                           "0F-1",
                           "+1F0",
                           " 0F0",
                           "0F0 ",
                           "0 F0",
                           "0FB0",
                           "0BWW1",
                           "0WB1",
                           "0SEND1",
                           "0SEND_1",
                           "0SEND_FF1",
                           "0REDUCE",
                           "STEP0",
                           "0EXCHANGE1",
                           "reduce",
                           "2147483648F0",
                           "0F2147483648",
                           "0F99999999999999999999",
                           "0F0F0",
                           "0x1F0"}) {
    const absl::StatusOr<Action> parsed = ParseAction(text);
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr(absl::StrCat("\"", text, "\" is no action")));
    EXPECT_THAT(parsed.status().message(),
                HasSubstr("F, B, W, BW, SEND_F, RECV_F, SEND_B, RECV_B, REDUCE, EXCHANGE, STEP"));
  }
}

TEST(ActionKinds, BackwardPerformsBothItsParts) {
  for (const ActionKindInfo& info : kActionKinds) {
    const bool both = info.kind == ActionKind::kBackward;
    EXPECT_EQ(Performs(info.kind, ActionKind::kForward), info.kind == ActionKind::kForward);
    EXPECT_EQ(Performs(info.kind, ActionKind::kBackwardInput), both || info.kind == ActionKind::kBackwardInput);
    EXPECT_EQ(Performs(info.kind, ActionKind::kBackwardWeight), both || info.kind == ActionKind::kBackwardWeight);
    EXPECT_EQ(IsCompute(info.kind), info.text.size() <= 2);
  }
}

}  // namespace
}  // namespace pipeloom
