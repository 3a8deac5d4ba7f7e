#ifndef PASSES_SCHEDULE_TEST_EDGES_H_
#define PASSES_SCHEDULE_TEST_EDGES_H_

#include <vector>

#include "passes/schedule/communication.h"
#include "passes/schedule/simulate.h"

namespace pipeloom {

inline CommunicationEdge ForwardEdge(int source, int destination) {
  return {ChunkId(source), ChunkId(destination), true};
}
inline CommunicationEdge BackwardEdge(int source, int destination) {
  return {ChunkId(source), ChunkId(destination), false};
}

// Each chunk's activations go to the next, and their gradients back.
inline std::vector<CommunicationEdge> ChainEdges(int chunks) {
  std::vector<CommunicationEdge> edges;
  for (int chunk = 0; chunk + 1 < chunks; ++chunk) {
    edges.push_back(ForwardEdge(chunk, chunk + 1));
    edges.push_back(BackwardEdge(chunk + 1, chunk));
  }
  return edges;
}

// A chain of equal chunks, with communication that takes `travel`.
inline ScheduleCosts ChainCosts(int chunks, const ChunkCosts& chunk, double travel) {
  ScheduleCosts costs;
  costs.chunks.assign(chunks, chunk);
  for (const CommunicationEdge& edge : ChainEdges(chunks)) costs.edges.push_back({edge, travel});
  return costs;
}

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_TEST_EDGES_H_
