#include "plugin/runtime/bulk.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

// Large enough that a piece costs more than its hand-over, small enough that eight ranks hold few of them.
constexpr int64_t kPieceBytes = int64_t{64} << 10;
constexpr int kSlots = 2;

}  // namespace

absl::StatusOr<Bulk> Bulk::Open(Transport& transport, ChannelTag tag, std::chrono::milliseconds deadline) {
  ASSIGN_OR_RETURN(PeerChannels channels,
                   PeerChannels::Open(transport, tag, "parameters and outputs", kPieceBytes, kSlots));
  return Bulk(std::move(channels), transport.size(), deadline);
}

absl::Status Bulk::SendPiece(PeerChannel& peer, const char* data, int64_t bytes) {
  int64_t& sent = messages_[static_cast<size_t>(peer.rank.value())].sent;
  RETURN_IF_ERROR(channels_.Acquire(peer, sent, Deadline::clock::now() + deadline_));
  std::memcpy(peer.send->Slot(sent), data, static_cast<size_t>(bytes));
  peer.send->Send(sent++);
  return absl::OkStatus();
}

absl::Status Bulk::Send(RankId to, const void* data, int64_t bytes) {
  PeerChannel& peer = channels_.peer(to);
  for (int64_t done = 0; done < bytes; done += kPieceBytes) {
    RETURN_IF_ERROR(SendPiece(peer, static_cast<const char*>(data) + done, std::min(kPieceBytes, bytes - done)));
  }
  return absl::OkStatus();
}

absl::Status Bulk::Receive(RankId from, void* data, int64_t bytes) {
  PeerChannel& peer = channels_.peer(from);
  int64_t& received = messages_[static_cast<size_t>(from.value())].received;
  for (int64_t done = 0; done < bytes; done += kPieceBytes) {
    RETURN_IF_ERROR(channels_.Receive(peer, received, Deadline::clock::now() + deadline_));
    std::memcpy(static_cast<char*>(data) + done, peer.receive->Slot(received),
                static_cast<size_t>(std::min(kPieceBytes, bytes - done)));
    peer.receive->Release(received++);
  }
  return absl::OkStatus();
}

absl::Status Bulk::Broadcast(RankId from, void* data, int64_t bytes) {
  if (from != channels_.me()) return Receive(from, data, bytes);
  // Piece by piece to all, so that all receive at once.
  for (int64_t done = 0; done < bytes; done += kPieceBytes) {
    for (PeerChannel& peer : channels_.peers()) {
      RETURN_IF_ERROR(SendPiece(peer, static_cast<const char*>(data) + done, std::min(kPieceBytes, bytes - done)));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
