#include "kernels/transport/failure_record.h"

#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipeloom {
namespace {

TEST(FailureRecordTest, KeepsCodeAndMessage) {
  for (const absl::Status& status : {absl::CancelledError("c"), absl::DeadlineExceededError("rank 1: 1F2: no answer"),
                                     absl::UnauthenticatedError(""), absl::InternalError(std::string("a\0b", 3)),
                                     absl::UnknownError(std::string(FailureRecord::kTextBytes, 'x'))}) {
    EXPECT_EQ(ToStatus(ToFailureRecord(status)), status);
  }
}

TEST(FailureRecordTest, LongMessageIsCutBetweenCharacters) {
  const std::string kept(FailureRecord::kTextBytes - 4, 'x');
  const absl::Status cut = ToStatus(ToFailureRecord(absl::InternalError(kept + "\xc3\xa4 and more")));
  EXPECT_EQ(cut, absl::InternalError(kept + "..."));
  const absl::Status whole = ToStatus(ToFailureRecord(absl::InternalError(kept + "\xc3\xa4")));
  EXPECT_EQ(whole, absl::InternalError(kept + "\xc3\xa4"));
}

TEST(FailureRecordTest, AnyBytesCanBeRead) {
  for (int byte : {0, 1, 0x7f, 0x80, 0xff}) {
    FailureRecord record;
    std::memset(&record, byte, sizeof(record));
    const absl::Status status = ToStatus(record);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
    EXPECT_LE(status.message().size(), size_t{FailureRecord::kTextBytes});
  }
}

}  // namespace
}  // namespace pipeloom
