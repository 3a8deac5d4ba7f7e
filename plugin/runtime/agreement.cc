#include "plugin/runtime/agreement.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/base/digest.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

static_assert(std::is_trivially_copyable<Call>::value, "it travels as bytes");

constexpr int kSlots = 2;  // a rank is ahead of another by one call at most
constexpr std::chrono::milliseconds kTimeToEnd(1000);

std::string CallToString(const Call& call) {
  const std::string program = absl::StrCat(" program ", call.program, " (", call.text, ")");
  switch (call.kind) {
    case Call::Kind::kStart:
      return "starts";
    case Call::Kind::kLoad:
      return absl::StrCat("loads", program);
    case Call::Kind::kBound:
      return absl::StrCat("has loaded", program);
    case Call::Kind::kStep:
      return absl::StrCat("begins step ", call.step, " of", program);
    case Call::Kind::kReadParameter:
      return absl::StrCat("reads parameter ", call.text);
    case Call::Kind::kOnRankZero:
      return absl::StrCat("comes to ", call.text, " on rank 0");
    case Call::Kind::kRefused:
      return absl::StrCat("refuses: ", call.text);
    case Call::Kind::kEnd:
      return "has ended";
  }
  return "";
}

bool IsSame(const Call& a, const Call& b) {
  return a.kind == b.kind && a.program == b.program && a.step == b.step && a.digest == b.digest;
}

// What `theirs` has in the first line in which it differs from `base`, and what that has there.
std::string FirstDifference(RankId rank, const std::string& theirs, const std::string& base) {
  const std::vector<std::string> lines = absl::StrSplit(theirs, '\n');
  const std::vector<std::string> base_lines = absl::StrSplit(base, '\n');
  const auto line = [](const std::vector<std::string>& all, size_t i) {
    return i < all.size() && !all[i].empty() ? absl::StrCat("`", all[i], "`") : std::string("nothing");
  };
  size_t i = 0;
  while (i < lines.size() && i < base_lines.size() && lines[i] == base_lines[i]) ++i;
  return absl::StrCat("rank ", rank.value(), " has ", line(lines, i), ", rank 0 has ", line(base_lines, i));
}

}  // namespace

void Call::SetText(absl::string_view value) {
  const size_t length = std::min(value.size(), sizeof(text) - 1);
  std::memcpy(text, value.data(), length);
  text[length] = 0;
}

absl::StatusOr<Agreement> Agreement::Open(Transport& transport, ChannelTag tag, std::chrono::milliseconds deadline) {
  ASSIGN_OR_RETURN(PeerChannels channels,
                   PeerChannels::Open(transport, tag, "agreement", static_cast<int64_t>(sizeof(Call)), kSlots));
  return Agreement(std::move(channels), transport.size(), deadline);
}

absl::Status Agreement::Tell(const Call& mine) {
  const Deadline deadline = Deadline::clock::now() + deadline_;
  calls_[static_cast<size_t>(channels_.me().value())] = mine;
  for (PeerChannel& peer : channels_.peers()) {
    RETURN_IF_ERROR(channels_.Acquire(peer, told_, deadline));
    std::memcpy(peer.send->Slot(told_), &mine, sizeof(mine));
    peer.send->Send(told_);
  }
  for (PeerChannel& peer : channels_.peers()) {
    RETURN_IF_ERROR(channels_.Receive(peer, told_, deadline));
    std::memcpy(&calls_[static_cast<size_t>(peer.rank.value())], peer.receive->Slot(told_), sizeof(Call));
    peer.receive->Release(told_);
  }
  ++told_;
  return absl::OkStatus();
}

bool Agreement::AllEqual() const {
  return std::all_of(calls_.begin(), calls_.end(), [&](const Call& call) { return IsSame(call, calls_[0]); });
}

absl::Status Agreement::DifferentCalls() const {
  std::string text = "the ranks do not do the same: ";
  for (size_t rank = 0; rank < calls_.size(); ++rank) {
    absl::StrAppend(&text, rank == 0 ? "" : "; ", "rank ", rank, " ", CallToString(calls_[rank]));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(text, ". Give all ranks the same batches and calls in the same order"));
}

absl::Status Agreement::On(const Call& mine) {
  RETURN_IF_ERROR(Tell(mine));
  return AllEqual() ? absl::OkStatus() : DifferentCalls();
}

absl::Status Agreement::OnText(Call mine, const std::string& text, absl::string_view advice, Bulk& bulk) {
  mine.digest = Digest(text);
  RETURN_IF_ERROR(Tell(mine));
  if (AllEqual()) return absl::OkStatus();
  const bool only_texts = std::all_of(calls_.begin(), calls_.end(), [&](Call call) {
    call.digest = mine.digest;
    return IsSame(call, mine);
  });
  if (!only_texts) return DifferentCalls();
  std::string base;
  std::vector<std::string> differences;
  for (size_t rank = 0; rank < calls_.size(); ++rank) {
    std::string theirs = text;
    auto bytes = static_cast<int64_t>(text.size());
    RETURN_IF_ERROR(bulk.Broadcast(RankId(static_cast<int>(rank)), &bytes, sizeof(bytes)));
    theirs.resize(static_cast<size_t>(bytes));
    RETURN_IF_ERROR(bulk.Broadcast(RankId(static_cast<int>(rank)), theirs.data(), bytes));
    if (rank == 0) base = theirs;
    if (theirs != base) differences.push_back(FirstDifference(RankId(static_cast<int>(rank)), theirs, base));
  }
  std::string message;
  for (const std::string& difference : differences) absl::StrAppend(&message, difference, "; ");
  return absl::InvalidArgumentError(absl::StrCat(message, advice));
}

void Agreement::End() {
  Call end;
  end.kind = Call::Kind::kEnd;
  // The credit of a call that all have made may still be under way.
  const Deadline deadline = Deadline::clock::now() + std::min(deadline_, kTimeToEnd);
  for (PeerChannel& peer : channels_.peers()) {
    if (!peer.send->Acquire(told_, deadline).ok()) continue;
    std::memcpy(peer.send->Slot(told_), &end, sizeof(end));
    peer.send->Send(told_);
  }
}

}  // namespace pipeloom
