#include "passes/channel_edges.h"

#include <algorithm>

namespace pipeloom {
namespace {

template <typename Visit>
void ForEachReceive(const Module& module, Visit visit) {
  for (const auto& graph : module.graphs) {
    for (const auto& node : graph->nodes()) {
      if (node->op == "receive" && node->info.rate == Rate::kMicro) visit(*graph, *node);
    }
  }
}

}  // namespace

ActionKind ActionOfPart(Part part) {
  switch (part) {
    case Part::kForward:
      return ActionKind::kForward;
    case Part::kBackwardInput:
      return ActionKind::kBackwardInput;
    default:
      return ActionKind::kBackwardWeight;
  }
}

CommunicationEdge EdgeOfReceive(const Graph& graph, const Node& receive) {
  const ChunkId source(static_cast<int>(GetInt(receive.attributes, "from", 0)));
  return {source, *graph.chunk, graph.part == Part::kForward};
}

std::vector<CommunicationEdge> ChannelEdges(const Module& module) {
  std::vector<CommunicationEdge> edges;
  ForEachReceive(module, [&](const Graph& graph, const Node& node) {
    const CommunicationEdge edge = EdgeOfReceive(graph, node);
    if (std::find(edges.begin(), edges.end(), edge) == edges.end()) edges.push_back(edge);
  });
  return edges;
}

std::vector<ChannelCredits> CreditsOfChannels(const Module& module) {
  std::vector<ChannelCredits> credits;
  ForEachReceive(module, [&](const Graph& graph, const Node& node) {
    ChannelCredits channel;
    channel.edge = EdgeOfReceive(graph, node);
    channel.slots = static_cast<int>(GetInt(node.attributes, "slots", 1));
    channel.group = static_cast<int>(GetInt(node.attributes, "group", 1));
    const std::string last = GetString(node.attributes, "released_after", "F");
    channel.released_after = ActionOfPart(PartOfLetter(last).value_or(Part::kForward));
    credits.push_back(channel);
  });
  return credits;
}

}  // namespace pipeloom
