#include "kernels/transport/shm_channels.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

static_assert(std::atomic<int64_t>::is_always_lock_free, "a lock of its own does not work between processes");

// Where the slots begin, from the header on.
int64_t SlotsOffset(int64_t name_bytes) {
  constexpr int64_t kLine = ShmChannelHeader::kCacheLine;
  return (static_cast<int64_t>(sizeof(ShmChannelHeader)) + name_bytes + kLine - 1) / kLine * kLine;
}

// Of header, name and slots; an empty message has an address too. As large as can be where that is too small.
int64_t ChannelBytes(const ChannelSpec& spec) {
  int64_t bytes = 0;
  const int64_t offset = SlotsOffset(static_cast<int64_t>(spec.name.size()));
  if (__builtin_mul_overflow(spec.bytes, int64_t{spec.slots}, &bytes) ||
      __builtin_add_overflow(std::max<int64_t>(bytes, 1), offset, &bytes)) {
    return std::numeric_limits<int64_t>::max();
  }
  return bytes;
}

char* NameOf(ShmChannelHeader* header) { return reinterpret_cast<char*>(header + 1); }

ChannelSpec SpecOf(ShmChannelHeader* header) {
  return {RankId(header->source),
          RankId(header->destination),
          ChannelTag(header->tag),
          std::string(NameOf(header), static_cast<size_t>(header->name_bytes)),
          header->bytes,
          header->slots,
          header->round};
}

ShmChannel ViewOf(ShmMapping mapping) {
  ShmChannel channel;
  channel.header = reinterpret_cast<ShmChannelHeader*>(mapping.data());
  channel.slots = mapping.data() + SlotsOffset(channel.header->name_bytes);
  channel.spec = SpecOf(channel.header);
  channel.mapping = std::move(mapping);
  return channel;
}

}  // namespace

absl::StatusOr<ShmChannel> ShmChannels::Open(const ChannelSpec& spec, ChannelEnd end, Deadline deadline) {
  std::lock_guard<std::mutex> mine(mutex_);
  ASSIGN_OR_RETURN(const FileLock all, arena_.Lock(deadline));
  RETURN_IF_ERROR(FindNew());
  const auto found = offsets_.find(Key(spec.source, spec.destination, spec.tag));
  ASSIGN_OR_RETURN(ShmChannel channel, found == offsets_.end() ? Make(spec) : Map(found->second));
  int32_t& opened = end == ChannelEnd::kSend ? channel.header->send_opened : channel.header->receive_opened;
  if (opened != 0) return OpenedTwiceError(spec, end);
  RETURN_IF_ERROR(CheckSameSpec(spec, channel.spec));
  opened = 1;
  return channel;
}

absl::Status ShmChannels::FindNew() {
  ASSIGN_OR_RETURN(const int64_t end, arena_.Bytes());
  while (end_ < end) {
    ShmChannelHeader header;
    RETURN_IF_ERROR(arena_.Read(end_, &header, sizeof(header)));
    if (header.pages_bytes == 0)
      return absl::UnavailableError("a rank has died, or had no memory, while it opened a channel");
    offsets_[Key(RankId(header.source), RankId(header.destination), ChannelTag(header.tag))] = end_;
    end_ += header.pages_bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<ShmChannel> ShmChannels::Make(const ChannelSpec& spec) {
  const int64_t bytes = ChannelBytes(spec);
  ASSIGN_OR_RETURN(const int64_t offset, arena_.Grow(bytes, ChannelToString(spec)));
  ASSIGN_OR_RETURN(ShmMapping mapping, arena_.Map(offset, bytes));
  auto* header = new (mapping.data()) ShmChannelHeader{};
  header->bytes = spec.bytes;
  header->round = spec.round;
  header->source = spec.source.value();
  header->destination = spec.destination.value();
  header->tag = spec.tag.value();
  header->slots = spec.slots;
  header->name_bytes = static_cast<int64_t>(spec.name.size());
  std::memcpy(NameOf(header), spec.name.data(), spec.name.size());
  header->pages_bytes = ShmArena::RoundUpToPages(bytes);
  return ViewOf(std::move(mapping));
}

absl::StatusOr<ShmChannel> ShmChannels::Map(int64_t offset) const {
  int64_t bytes = 0;
  RETURN_IF_ERROR(arena_.Read(offset, &bytes, sizeof(bytes)));
  ASSIGN_OR_RETURN(ShmMapping mapping, arena_.Map(offset, bytes));
  return ViewOf(std::move(mapping));
}

}  // namespace pipeloom
