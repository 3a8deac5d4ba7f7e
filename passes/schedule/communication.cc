#include "passes/schedule/communication.h"

#include "absl/strings/str_cat.h"

namespace pipeloom {

std::string EdgeToString(const CommunicationEdge& edge) {
  return absl::StrCat(edge.forward ? "forward" : "backward", " edge ", edge.source.value(), " -> ",
                      edge.destination.value());
}

bool CrossesRanks(const Schedule& schedule, const CommunicationEdge& edge) {
  return schedule.rank_of(edge.source) != schedule.rank_of(edge.destination);
}

absl::Status CheckEdges(const Schedule& schedule, absl::Span<const CommunicationEdge> edges) {
  for (const CommunicationEdge& edge : edges) {
    for (ChunkId chunk : {edge.source, edge.destination}) {
      if (chunk < ChunkId(0) || chunk >= ChunkId(schedule.chunks())) {
        return absl::InvalidArgumentError(absl::StrCat(EdgeToString(edge), ": the schedule has chunks 0 to ",
                                                       schedule.chunks() - 1, ", and no chunk ", chunk.value()));
      }
    }
    if (edge.source == edge.destination) {
      return absl::InvalidArgumentError(absl::StrCat(EdgeToString(edge), ": a chunk needs no edge to itself"));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
