#ifndef PASSES_CHANNEL_EDGES_H_
#define PASSES_CHANNEL_EDGES_H_

#include <vector>

#include "passes/ir/module.h"
#include "passes/schedule/communication.h"

namespace pipeloom {

// What the schedule must know of a module's channels for values of every micro-batch, read from its receive nodes.

// The edges between chunks, each once.
std::vector<CommunicationEdge> ChannelEdges(const Module& module);

// One entry a channel; plan_buffers has written slots, last part and group.
std::vector<ChannelCredits> CreditsOfChannels(const Module& module);

// The edge of one receive node of `graph`.
CommunicationEdge EdgeOfReceive(const Graph& graph, const Node& receive);

// F, B or W as the schedule calls the part; W also for R and U.
ActionKind ActionOfPart(Part part);

}  // namespace pipeloom

#endif  // PASSES_CHANNEL_EDGES_H_
