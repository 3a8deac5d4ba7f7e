#include "kernels/transport/channel_spec.h"

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

std::string Route(const ChannelSpec& spec) {
  return absl::StrCat("channel '", spec.name, "' (rank ", spec.source.value(), " -> rank ", spec.destination.value(),
                      ", tag ", spec.tag.value());
}

absl::string_view EndName(ChannelEnd end) { return end == ChannelEnd::kSend ? "sending" : "receiving"; }

absl::Status CheckRank(const ChannelSpec& spec, absl::string_view role, RankId rank, int size) {
  if (rank.value() >= 0 && rank.value() < size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(ChannelToString(spec), " has rank ", rank.value(), " as its ", role,
                                                 "; give one of the ", size, " ranks 0 to ", size - 1));
}

}  // namespace

int64_t ReleasedBefore(const ChannelSpec& spec, int64_t k) {
  const int64_t place = k % spec.round;
  if (place >= spec.slots) return k - spec.slots + 1;
  if (k < spec.round) return 0;
  // The last message of the round before in the same slot.
  const int64_t last = place + (spec.round - 1 - place) / spec.slots * spec.slots;
  return k - place - spec.round + last + 1;
}

std::string ChannelName(const ChannelSpec& spec) { return absl::StrCat(Route(spec), ")"); }

std::string ChannelToString(const ChannelSpec& spec) {
  return absl::StrCat(Route(spec), ", ", spec.slots, spec.slots == 1 ? " slot" : " slots", " of ", spec.bytes, " bytes",
                      spec.round == ChannelSpec::kOneRound ? "" : absl::StrCat(", rounds of ", spec.round), ")");
}

absl::Status CheckChannelEnd(const ChannelSpec& spec, ChannelEnd end, RankId rank, int size) {
  RETURN_IF_ERROR(CheckRank(spec, "source", spec.source, size));
  RETURN_IF_ERROR(CheckRank(spec, "destination", spec.destination, size));
  const RankId owner = end == ChannelEnd::kSend ? spec.source : spec.destination;
  if (owner != rank) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank.value(), " opened the ", EndName(end), " end of ",
                                                   ChannelToString(spec), ", which is for rank ", owner.value(),
                                                   " to open"));
  }
  if (spec.slots < 1) {
    return absl::InvalidArgumentError(absl::StrCat(ChannelToString(spec), " has no slot; give it 1 or more"));
  }
  if (spec.round < 1) {
    return absl::InvalidArgumentError(absl::StrCat(ChannelToString(spec), ": give 1 or more messages a round"));
  }
  if (spec.bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(ChannelToString(spec), " has a negative size; give 0 or more bytes"));
  }
  return absl::OkStatus();
}

absl::Status CheckSameSpec(const ChannelSpec& mine, const ChannelSpec& theirs) {
  if (mine == theirs) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the two ends of a channel differ: this rank opened ",
                                                 ChannelToString(mine), ", the other end ", ChannelToString(theirs),
                                                 "; open both with the same spec"));
}

absl::Status OpenedTwiceError(const ChannelSpec& spec, ChannelEnd end) {
  return absl::InvalidArgumentError(absl::StrCat("the ", EndName(end), " end of ", ChannelToString(spec),
                                                 " is open already; give each channel of two ranks its own tag"));
}

}  // namespace pipeloom
