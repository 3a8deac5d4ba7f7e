#include "passes/parts.h"

#include <algorithm>

namespace pipeloom {

Graph& FindOrAddPart(Module& module, ChunkId chunk, Part part) {
  if (Graph* graph = module.Find(chunk, part)) return *graph;
  auto graph = std::make_unique<Graph>(module.graphs[0]->name());
  graph->chunk = chunk;
  graph->part = part;
  auto at = std::find_if(module.graphs.begin(), module.graphs.end(), [&](const auto& other) {
    return *other->chunk > chunk || (*other->chunk == chunk && *other->part > part);
  });
  return **module.graphs.insert(at, std::move(graph));
}

Graph* FindProducer(const Module& module, ChunkId chunk, absl::string_view name) {
  for (const auto& graph : module.graphs) {
    const Value* value = graph->Find(name);
    if (graph->chunk == chunk && value != nullptr && value->kind == Value::Kind::kResult) return graph.get();
  }
  return nullptr;
}

}  // namespace pipeloom
