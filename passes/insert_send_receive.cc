#include "passes/insert_send_receive.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/parts.h"

namespace pipeloom {
namespace {

struct Boundary {
  std::string name;
  TensorType type;
  ChunkId reader;
};

// In the order of the graphs and their inputs; once for each reading chunk.
std::vector<Boundary> CollectBoundaries(const Module& module) {
  std::vector<Boundary> boundaries;
  for (const auto& graph : module.graphs) {
    for (const Value* input : graph->inputs()) {
      if (input->kind != Value::Kind::kBoundary) continue;
      const bool known = std::any_of(boundaries.begin(), boundaries.end(), [&](const Boundary& other) {
        return other.name == input->name && other.reader == *graph->chunk;
      });
      if (!known) boundaries.push_back({input->name, input->type, *graph->chunk});
    }
  }
  return boundaries;
}

// The value itself, or the saved input through which an R graph reads what W made.
Value* FindOrJoin(Graph& graph, const Boundary& boundary) {
  Value* value = graph.Find(boundary.name);
  return value != nullptr ? value : graph.AddJoined(Value::Kind::kSaved, boundary.name, boundary.type);
}

size_t CountLeading(const Graph& graph, std::initializer_list<absl::string_view> ops) {
  size_t count = 0;
  while (count < graph.nodes().size() && std::find(ops.begin(), ops.end(), graph.nodes()[count]->op) != ops.end()) {
    ++count;
  }
  return count;
}

// Where R receives a value: in front of what reads it first, so that what does not need it goes on before.
size_t FirstReader(const Graph& graph, const Value* value) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const std::vector<Value*>& operands = graph.nodes()[i]->operands;
    if (std::find(operands.begin(), operands.end(), value) != operands.end()) return i;
  }
  return graph.nodes().size();
}

size_t PlaceAfter(const Graph& graph, const Node* producer) {
  const auto place = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                                  [&](const auto& node) { return node.get() == producer; });
  return static_cast<size_t>(place - graph.nodes().begin()) + 1;
}

void AddSend(Module& module, Graph& producer, const Boundary& boundary, int channel) {
  const Value* value = producer.Find(boundary.name);
  const bool once_a_step = producer.part == Part::kReduce || value->producer->op == "grad_accumulate";
  Graph& sender = once_a_step ? FindOrAddPart(module, *producer.chunk, Part::kReduce) : producer;
  NodeInfo info = value->producer->info;
  if (once_a_step) {
    info.phase = Phase::kUpdate;
    info.rate = Rate::kStep;
  }
  Value* sent = FindOrJoin(sender, boundary);
  const size_t at = sent->producer == nullptr      ? CountLeading(sender, {"send"})
                    : sender.part == Part::kReduce ? PlaceAfter(sender, sent->producer)
                                                   : sender.nodes().size();
  sender.AddTypedNode("send", {sent}, {{"channel", int64_t{channel}}, {"to", int64_t{boundary.reader.value()}}}, info,
                      {}, "", at);
}

// Which part of the reading chunk receives what `producer` makes.
Part ReceivingPart(const Graph& producer, const Value& value) {
  if (value.producer->op == "grad_accumulate") return Part::kReduce;
  return *producer.part;
}

void AddReceive(Module& module, const Graph& producer, const Boundary& boundary, int channel) {
  const Value* made = producer.Find(boundary.name);
  Graph& receiver = FindOrAddPart(module, boundary.reader, ReceivingPart(producer, *made));
  NodeInfo info;
  info.stage = module.config.StageOf(boundary.reader);
  info.phase = receiver.part == Part::kForward  ? Phase::kForward
               : receiver.part == Part::kReduce ? Phase::kUpdate
                                                : Phase::kBackward;
  info.rate = receiver.part == Part::kReduce ? Rate::kStep : Rate::kMicro;
  Value* joined = receiver.Find(boundary.name);
  const size_t at =
      receiver.part == Part::kReduce ? FirstReader(receiver, joined) : CountLeading(receiver, {"send", "receive"});
  const Node* receive =
      receiver.AddTypedNode("receive", {}, {{"channel", int64_t{channel}}, {"from", int64_t{producer.chunk->value()}}},
                            info, {boundary.type}, boundary.name, at);
  Value* received = receive->results[0];
  if (joined != nullptr) {
    receiver.ReplaceUses(joined, received);
    receiver.RemoveUnusedLeaves();
    receiver.Rename(received, boundary.name);
  }
  bool saved = false;
  for (auto& other : module.graphs) {
    if (other.get() == &receiver || *other->chunk != boundary.reader) continue;
    Value* input = other->Find(boundary.name);
    if (input == nullptr || input->kind != Value::Kind::kBoundary) continue;
    input->kind = Value::Kind::kSaved;
    saved = true;
  }
  if (saved) receiver.outputs.push_back({received, "", 0});
}

// Keeps only the outputs that another part of the same chunk still reads.
void DropUnreadOutputs(Module& module) {
  for (auto& graph : module.graphs) {
    auto& outputs = graph->outputs;
    outputs.erase(std::remove_if(outputs.begin(), outputs.end(),
                                 [&](const Output& output) {
                                   return std::none_of(module.graphs.begin(), module.graphs.end(),
                                                       [&](const auto& other) {
                                                         if (other == graph || *other->chunk != *graph->chunk)
                                                           return false;
                                                         const Value* value = other->Find(output.value->name);
                                                         return value != nullptr && value->kind == Value::Kind::kSaved;
                                                       });
                                 }),
                  outputs.end());
  }
}

// What a part of the chunk newly reads, the part that makes it gives out.
void AddReadOutputs(Module& module) {
  for (const auto& reader : module.graphs) {
    for (const Value* input : reader->inputs()) {
      if (input->kind != Value::Kind::kSaved) continue;
      Graph* producer = FindProducer(module, *reader->chunk, input->name);
      if (producer == nullptr) continue;
      Value* value = producer->Find(input->name);
      const bool given = std::any_of(producer->outputs.begin(), producer->outputs.end(),
                                     [&](const Output& output) { return output.value == value; });
      if (!given) producer->outputs.push_back({value, "", 0});
    }
  }
}

// In R a rank sends the accumulated gradients of all its chunks, then goes over the chunks in order: what it receives
// there must not depend on what comes later.
absl::Status CheckReduceEnds(const Module& module) {
  std::vector<std::vector<const Node*>> work(static_cast<size_t>(module.config.stages));  // by rank, last one first
  for (int chunk = module.config.chunks() - 1; chunk >= 0; --chunk) {
    const Graph* reduce = module.Find(ChunkId(chunk), Part::kReduce);
    if (reduce == nullptr) continue;
    std::vector<const Node*>& nodes = work[static_cast<size_t>(chunk % module.config.stages)];
    for (auto node = reduce->nodes().rbegin(); node != reduce->nodes().rend(); ++node) nodes.push_back(node->get());
  }
  absl::flat_hash_set<int64_t> sent;
  for (const auto& graph : module.graphs) {
    if (graph->part != Part::kReduce) continue;
    const size_t first = CountLeading(*graph, {"send"});
    for (size_t i = 0; i < first; ++i) sent.insert(GetInt(graph->nodes()[i]->attributes, "channel", -1));
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (std::vector<const Node*>& nodes : work) {
      while (!nodes.empty()) {
        const int64_t channel = GetInt(nodes.back()->attributes, "channel", -1);
        if (nodes.back()->op == "receive" && !sent.contains(channel)) break;
        if (nodes.back()->op == "send") sent.insert(channel);
        nodes.pop_back();
        moved = true;
      }
    }
  }
  for (const std::vector<const Node*>& nodes : work) {
    if (nodes.empty()) continue;
    return absl::UnimplementedError(absl::StrCat(
        "what is done once a step goes to and fro between the ", module.config.chunks_per_rank, " chunks of a rank: %",
        nodes.back()->results[0]->name, " of stage ", nodes.back()->info.stage->value(),
        " would never arrive; choose a schedule with one chunk a rank, such as 1f1b"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> InsertSendReceive::Run(Module& module) const {
  const std::vector<Boundary> boundaries = CollectBoundaries(module);
  int channel = 0;
  for (const Boundary& boundary : boundaries) {
    Graph* producer = nullptr;
    for (const auto& graph : module.graphs) {
      // Among the outputs: what a graph has for itself may have the same name.
      for (const Output& output : graph->outputs) {
        if (output.value->name == boundary.name && output.value->producer->op != "receive") producer = graph.get();
      }
    }
    if (producer == nullptr) {
      return absl::InternalError(absl::StrCat("no graph makes boundary value %", boundary.name));
    }
    AddSend(module, *producer, boundary, channel);
    AddReceive(module, *producer, boundary, channel);
    ++channel;
  }
  DropUnreadOutputs(module);
  AddReadOutputs(module);
  RETURN_IF_ERROR(CheckReduceEnds(module));
  return !boundaries.empty();
}

absl::Status InsertSendReceive::CheckAfter(const Module& module) const {
  std::map<int64_t, std::vector<TensorType>> sent;
  std::map<int64_t, std::vector<TensorType>> received;
  for (const auto& graph : module.graphs) {
    for (const Value* input : graph->inputs()) {
      if (input->kind == Value::Kind::kBoundary) {
        return absl::InternalError(absl::StrCat("boundary value %", input->name, " has no channel"));
      }
    }
    for (const auto& node : graph->nodes()) {
      if (node->op == "send") sent[GetInt(node->attributes, "channel", -1)].push_back(node->operands[0]->type);
      if (node->op == "receive") received[GetInt(node->attributes, "channel", -1)].push_back(node->results[0]->type);
    }
  }
  for (const auto& [channel, types] : sent) {
    if (types.size() != 1 || received[channel] != types) {
      return absl::InternalError(absl::StrCat("channel ", channel, " has ", types.size(), " sends and ",
                                              received[channel].size(), " receives, or other types at its ends"));
    }
  }
  if (received.size() != sent.size()) return absl::InternalError("a receive has no send");
  return absl::OkStatus();
}

}  // namespace pipeloom
