#include "kernels/transport/mpi_channel.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/base/digest.h"
#include "kernels/base/status_macros.h"
#include "kernels/transport/mpi_status.h"

namespace pipeloom {
namespace {

MpiSpecRecord ToRecord(const ChannelSpec& spec) {
  MpiSpecRecord record = {spec.bytes, spec.slots, spec.round, Digest(spec.name), {}};
  std::memcpy(record.name, spec.name.data(), std::min<size_t>(spec.name.size(), MpiSpecRecord::kNameBytes));
  return record;
}

// The other end's spec of the channel that is `mine` here.
ChannelSpec FromRecord(const MpiSpecRecord& record, const ChannelSpec& mine) {
  ChannelSpec spec = mine;
  spec.bytes = record.bytes;
  spec.slots = static_cast<int>(record.slots);
  spec.round = record.round;
  if (record.name_hash != Digest(mine.name)) {
    spec.name.assign(record.name, strnlen(record.name, MpiSpecRecord::kNameBytes));
  }
  return spec;
}

// One byte at least, so that an empty message has an address too.
size_t SlotBytes(const ChannelSpec& spec) {
  return std::max<size_t>(1, static_cast<size_t>(spec.bytes) * static_cast<size_t>(spec.slots));
}

RankId Other(const ChannelSpec& spec, ChannelEnd end) {
  return end == ChannelEnd::kSend ? spec.destination : spec.source;
}

}  // namespace

MpiChannel::MpiChannel(const ChannelSpec& spec, ChannelEnd end, const MpiChannelContext& context)
    : spec_(spec), context_(context), end_(end), slots_(SlotBytes(spec)), mine_(ToRecord(spec)) {}

absl::StatusOr<int> MpiChannel::Add(Direction direction, void* data, int64_t bytes, int part) {
  const bool with_the_data = (end_ == ChannelEnd::kSend) == (direction == Direction::kSend);
  ASSIGN_OR_RETURN(MPI_Request request, InitMessage(direction, data, bytes, Other(spec_, end_).value(),
                                                    spec_.tag.value(), with_the_data ? context_.data : context_.credits,
                                                    absl::StrCat("opening ", ChannelName(spec_))));
  return context_.requests.Add(request, direction, this, part);
}

absl::Status MpiChannel::ExchangeSpecs() {
  ASSIGN_OR_RETURN(const int receive, Add(Direction::kReceive, &theirs_, sizeof(theirs_), kTheirSpec));
  ASSIGN_OR_RETURN(const int send, Add(Direction::kSend, &mine_, sizeof(mine_), kMySpec));
  Start(receive);
  Start(send);
  return absl::OkStatus();
}

void MpiChannel::Start(int request) { Check(context_.requests.Start(request)); }

void MpiChannel::Check(int code) {
  if (code == MPI_SUCCESS) return;
  const bool sends = end_ == ChannelEnd::kSend;
  context_.failure.Report(MpiStatus(
      code, absl::StrCat("rank ", (sends ? spec_.source : spec_.destination).value(), ": ", ChannelName(spec_),
                         ": no message can be exchanged with rank ", Other(spec_, end_).value())));
}

void MpiChannel::OnComplete(int part, int code) {
  Check(code);
  if (code != MPI_SUCCESS || part == kMySpec) return;
  if (part == kTheirSpec) {
    difference_ = CheckSameSpec(spec_, FromRecord(theirs_, spec_));
    agreed_ = true;
  } else {
    OnMessage(part);
  }
}

absl::Status MpiSendChannel::Open() {
  RETURN_IF_ERROR(ExchangeSpecs());
  ASSIGN_OR_RETURN(credit_, Add(Direction::kReceive, &credit_in_, sizeof(credit_in_), kCredit));
  for (int slot = 0; slot < spec_.slots; ++slot) {
    ASSIGN_OR_RETURN(const int request, Add(Direction::kSend, Slot(slot), spec_.bytes, kFirstSlot + slot));
    if (slot == 0) first_ = request;
  }
  Start(credit_);
  return absl::OkStatus();
}

void MpiSendChannel::Send(int64_t k) {
  PIPELOOM_CHECK(k == sent_, ChannelName(spec_), ": message ", k, " sent where ", sent_, " is next");
  const int slot = SlotOf(spec_, k);
  under_way_[slot] = true;
  ++sent_;
  Start(first_ + slot);
}

void MpiSendChannel::OnMessage(int part) {
  if (part == kCredit) {
    released_ = credit_in_;
    Start(credit_);
  } else {
    under_way_[part - kFirstSlot] = false;
  }
}

absl::Status MpiReceiveChannel::Open() {
  RETURN_IF_ERROR(ExchangeSpecs());
  ASSIGN_OR_RETURN(credit_, Add(Direction::kSend, &credit_out_, sizeof(credit_out_), kCredit));
  for (int slot = 0; slot < spec_.slots; ++slot) {
    ASSIGN_OR_RETURN(const int request, Add(Direction::kReceive, Slot(slot), spec_.bytes, kFirstSlot + slot));
    if (slot == 0) first_ = request;
  }
  PostReceives();
  return absl::OkStatus();
}

void MpiReceiveChannel::PostReceives() {
  for (; ReleasedBefore(spec_, posted_) <= released_; ++posted_) Start(first_ + SlotOf(spec_, posted_));
}

void MpiReceiveChannel::OnMessage(int part) {
  if (part == kCredit) {
    credit_under_way_ = false;
    if (credit_out_ != released_) SendCredit();
    return;
  }
  complete_[part - kFirstSlot] = true;
  for (; arrived_ < posted_ && complete_[SlotOf(spec_, arrived_)]; ++arrived_)
    complete_[SlotOf(spec_, arrived_)] = false;
}

void MpiReceiveChannel::Release(int64_t k) {
  PIPELOOM_CHECK(released_ <= k && k < arrived_, ChannelName(spec_), ": message ", k, " released, with ", released_,
                 " released before and ", arrived_, " arrived");
  released_ = k + 1;
  PostReceives();
  if (!credit_under_way_) SendCredit();
}

void MpiReceiveChannel::SendCredit() {
  credit_under_way_ = true;
  credit_out_ = released_;
  Start(credit_);
}

}  // namespace pipeloom
