#include "passes/plan_buffers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/buffer_overlap.h"
#include "passes/channel_edges.h"
#include "passes/chunk_values.h"
#include "passes/ir/op_table.h"
#include "passes/ir/print.h"
#include "passes/schedule/live_window.h"
#include "passes/schedule/lower_communication.h"
#include "passes/schedule/schedule_table.h"
#include "passes/schedule/simulate.h"
#include "passes/schedule/slots_in_flight.h"

namespace pipeloom {
namespace {

bool IsSend(const Node& node) { return node.op == "send"; }

// Buffers that values of disjoint lifetimes share.
class Pool {
 public:
  // The smallest free buffer that is large enough, else the largest free one, grown, else a new one.
  int Take(int64_t bytes, int* next_buffer) {
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (best == free_.end()) {
        best = it;
        continue;
      }
      const bool fits = size_[*it] >= bytes;
      const bool best_fits = size_[*best] >= bytes;
      if (fits != best_fits ? fits : (fits ? size_[*it] < size_[*best] : size_[*it] > size_[*best])) best = it;
    }
    const int buffer = best == free_.end() ? (*next_buffer)++ : *best;
    if (best != free_.end()) free_.erase(best);
    size_[buffer] = std::max(size_[buffer], bytes);
    return buffer;
  }
  void Give(int buffer) { free_.push_back(buffer); }

 private:
  absl::flat_hash_map<int, int64_t> size_;
  std::vector<int> free_;
};

// A run in which F, B and W of every chunk take equal time and messages none: how far senders run ahead of receivers.
absl::StatusOr<Simulation> SimulateInUnitTimes(const Schedule& schedule, const std::vector<CommunicationEdge>& edges) {
  ASSIGN_OR_RETURN(const Schedule lowered, LowerCommunication(schedule, edges));
  ScheduleCosts costs;
  costs.chunks.assign(static_cast<size_t>(schedule.chunks()), {1.0, 1.0, 1.0, 1.0});
  for (const CommunicationEdge& edge : edges) costs.edges.push_back({edge, 0.0});
  return Simulate(lowered, costs);
}

class ChunkPlanner {
 public:
  ChunkPlanner(Module& module, ChunkId chunk, const Schedule& schedule, const Simulation& simulation)
      : module_(module),
        chunk_(chunk),
        simulation_(simulation),
        actions_(schedule.actions[static_cast<size_t>(schedule.rank_of(chunk).value())]),
        micro_batches_(schedule.micro_batches),
        values_(module, chunk) {}

  // Gives the channels that this chunk receives from their slots, and says when a slot is free again.
  void PlanReceives(absl::flat_hash_map<int64_t, int64_t>* slots_of_channel) {
    for (auto& graph : module_.graphs) {
      if (graph->chunk != chunk_) continue;
      for (const auto& node : graph->nodes()) {
        if (node->op != "receive") continue;
        Value* received = node->results[0];
        int slots = 1;
        if (node->info.rate == Rate::kMicro) {
          const Part last = values_.LastReadIn(received);
          node->attributes["released_after"] = std::string(1, PartLetter(last));
          if (last == Part::kBackwardWeight) node->attributes["group"] = int64_t{values_.GroupOf(received)};
          const int in_flight =
              SlotsInFlight(simulation_, EdgeOfReceive(*graph, *node), ActionOfPart(last), GroupReleased(received));
          slots = Slots(received, in_flight + 1);  // one to spare, since real times are no unit times
        }
        const int64_t channel = GetInt(node->attributes, "channel", -1);
        node->attributes["slots"] = int64_t{slots};
        (*slots_of_channel)[channel] = slots;
        received->placement = {Placement::Space::kChannel, static_cast<int>(channel), slots, false};
      }
    }
  }

  absl::Status PlanResults(const absl::flat_hash_map<int64_t, int64_t>& slots_of_channel) {
    for (auto& graph : module_.graphs) {
      if (graph->chunk != chunk_) continue;
      for (const auto& node : graph->nodes()) {
        if (!IsSend(*node)) continue;
        const auto slots = slots_of_channel.find(GetInt(node->attributes, "channel", -1));
        if (slots == slots_of_channel.end()) {
          return absl::FailedPreconditionError(absl::StrCat(Print(*node), ": no receive of this channel"));
        }
        node->attributes["slots"] = slots->second;
      }
      for (const auto& node : graph->nodes()) {
        if (IsView(*node) || node->op == "receive") continue;
        for (Value* result : node->results) result->placement = PlaceResult(*graph, *node, result);
        for (int buffer : unread_) pool_.Give(buffer);
        unread_.clear();
        GiveBackOperands(*graph, *node);
      }
    }
    return absl::OkStatus();
  }

 private:
  Placement PlaceResult(const Graph& graph, const Node& node, const Value* result) {
    if (node.op == "grad_accumulate") {
      if (auto shared = accumulator_.find(values_.Root(node.operands[0])); shared != accumulator_.end()) {
        return InBuffer(shared->second, 1);
      }
    }
    if (node.info.rate == Rate::kStep || node.op == "grad_accumulate" || node.op == "micro_batch_merge") {
      return InBuffer(next_buffer_++, 1);
    }
    const std::vector<ChunkValues::Reader>& readers = values_.ReadersOf(result);
    if (readers.size() == 1 && readers[0].node->operands[0] == result) {
      const Node& reader = *readers[0].node;
      if (reader.op == "grad_accumulate") return PlaceAddend(reader, result);
      if (IsSend(reader)) {
        return {Placement::Space::kChannel, static_cast<int>(GetInt(reader.attributes, "channel", -1)),
                static_cast<int>(GetInt(reader.attributes, "slots", 1)), false};
      }
    }
    if (values_.LastReadIn(result) != *graph.part) return InBuffer(next_buffer_++, Slots(result, 1));
    return InBuffer(PlaceTransient(graph, node, result), 1);
  }

  // The first addend is made where the accumulator is, the others beside it.
  Placement PlaceAddend(const Node& accumulate, const Value* result) {
    const int buffer = next_buffer_++;
    accumulator_[result] = buffer;
    const int64_t group = GetInt(accumulate.attributes, "group", 1);
    if (group >= micro_batches_) return InBuffer(buffer, 1);
    return {Placement::Space::kBuffer, buffer, 2, true};
  }

  int PlaceTransient(const Graph& graph, const Node& node, const Value* result) {
    int buffer = -1;
    const OpDef* op = FindOp(node.op);
    if (op != nullptr && op->traits.elementwise) {
      for (const Value* operand : node.operands) {
        const Value* root = values_.Root(operand);
        if (root->type.bytes() != result->type.bytes() || !EndsAt(graph, node, root)) continue;
        buffer = transients_.at(root);
        transients_.erase(root);
        break;
      }
    }
    if (buffer < 0) buffer = pool_.Take(result->type.bytes(), &next_buffer_);
    if (values_.ReadersOf(result).empty()) {
      unread_.push_back(buffer);  // taken until the node has all its results
    } else {
      transients_[result] = buffer;
    }
    return buffer;
  }

  // Whether `root` is a transient that `node` is the last to read.
  bool EndsAt(const Graph& graph, const Node& node, const Value* root) const {
    if (!transients_.contains(root)) return false;
    const ChunkValues::Reader& last = values_.ReadersOf(root).back();
    return last.part == *graph.part && last.node == &node;
  }

  void GiveBackOperands(const Graph& graph, const Node& node) {
    for (const Value* operand : node.operands) {
      const Value* root = values_.Root(operand);
      if (!EndsAt(graph, node, root)) continue;
      pool_.Give(transients_.at(root));
      transients_.erase(root);
    }
  }

  // After W a value's micro-batches become free a group at a time, else one by one.
  int GroupReleased(const Value* root) const {
    return values_.LastReadIn(root) == Part::kBackwardWeight ? values_.GroupOf(root) : 1;
  }

  // As many as are live at a time, at least `least`, and so many that groups lie in one row of slots.
  int Slots(const Value* root, int least) const {
    const int window = LiveWindow(actions_, chunk_, ActionOfPart(values_.MadeIn(root)),
                                  ActionOfPart(values_.LastReadIn(root)), GroupReleased(root));
    const int group = values_.GroupOf(root);
    return std::min(micro_batches_, (std::max(window, least) + group - 1) / group * group);
  }

  static Placement InBuffer(int buffer, int slots) { return {Placement::Space::kBuffer, buffer, slots, false}; }

  Module& module_;
  const ChunkId chunk_;
  const Simulation& simulation_;
  const std::vector<Action>& actions_;
  const int micro_batches_;
  const ChunkValues values_;
  int next_buffer_ = 0;
  Pool pool_;
  std::vector<int> unread_;                             // of results of the node at hand
  absl::flat_hash_map<const Value*, int> transients_;   // those that are live, and their buffers
  absl::flat_hash_map<const Value*, int> accumulator_;  // by addend
};

// Places what lives within a body in the buffers of its frame, which every chunk that calls it has room for. What a
// body gives is placed by each call.
class FramePlanner {
 public:
  explicit FramePlanner(const Graph& body) : body_(body) {
    for (const Output& output : body.outputs) given_.insert(output.value);
    for (const auto& node : body.nodes()) {
      if (IsView(*node)) continue;
      for (const Value* operand : node->operands) last_reader_[Root(operand)] = node.get();
    }
  }

  void Run() {
    for (const auto& node : body_.nodes()) {
      if (IsView(*node)) continue;
      std::vector<int> unread;
      for (Value* result : node->results) {
        if (given_.contains(result)) continue;
        const int buffer = Take(*node, *result);
        result->placement = {Placement::Space::kBuffer, buffer, 1, false};
        (last_reader_.contains(result) ? live_[result] : unread.emplace_back()) = buffer;
      }
      for (int buffer : unread) pool_.Give(buffer);
      for (const Value* operand : node->operands) Release(*node, Root(operand));
    }
  }

 private:
  static const Value* Root(const Value* value) {
    while (value->producer != nullptr && IsView(*value->producer)) value = value->producer->operands[0];
    return value;
  }

  bool EndsAt(const Node& node, const Value* root) const {
    return live_.contains(root) && last_reader_.at(root) == &node;
  }

  int Take(const Node& node, const Value& result) {
    const OpDef* op = FindOp(node.op);
    for (const Value* operand : node.operands) {
      const Value* root = Root(operand);
      if (op == nullptr || !op->traits.elementwise || root->type.bytes() != result.type.bytes()) continue;
      if (!EndsAt(node, root)) continue;
      const int buffer = live_.at(root);
      live_.erase(root);
      return buffer;
    }
    return pool_.Take(result.type.bytes(), &next_buffer_);
  }

  void Release(const Node& node, const Value* root) {
    if (!EndsAt(node, root)) return;
    pool_.Give(live_.at(root));
    live_.erase(root);
  }

  const Graph& body_;
  absl::flat_hash_set<const Value*> given_;
  absl::flat_hash_map<const Value*, const Node*> last_reader_;
  absl::flat_hash_map<const Value*, int> live_;
  int next_buffer_ = 0;
  Pool pool_;
};

absl::Status CheckScheduleReachesAllParts(const Module& module, const Schedule& schedule) {
  for (const auto& graph : module.graphs) {
    if (!graph->part) return absl::FailedPreconditionError("the module is not split; run split_stages first");
    if (Trains(schedule) || (graph->part != Part::kBackwardInput && graph->part != Part::kBackwardWeight)) continue;
    return absl::InvalidArgumentError(absl::StrCat("schedule ", module.config.schedule,
                                                   " only runs forward, but chunk ", graph->chunk->value(),
                                                   " has a backward part; choose ", ScheduleChoices(true)));
  }
  return absl::OkStatus();
}

// All that this pass writes, in the order of the text.
std::vector<int64_t> Plan(const Module& module) {
  std::vector<int64_t> plan;
  for (const auto* graphs : {&module.blocks, &module.graphs}) {
    for (const auto& graph : *graphs) {
      for (const auto& node : graph->nodes()) {
        for (const Value* result : node->results) {
          const Placement place = result->placement.value_or(Placement{Placement::Space::kBuffer, -1, 0, false});
          plan.insert(plan.end(), {static_cast<int64_t>(place.space), place.index, place.slots, place.first_apart});
        }
        if (node->op != "send" && node->op != "receive") continue;
        const std::string released = GetString(node->attributes, "released_after", "-");
        plan.insert(plan.end(),
                    {GetInt(node->attributes, "slots", -1), GetInt(node->attributes, "group", -1), released[0]});
      }
    }
  }
  return plan;
}

}  // namespace

absl::StatusOr<bool> PlanBuffers::Run(Module& module) const {
  const PipelineConfig& config = module.config;
  ASSIGN_OR_RETURN(const Schedule schedule,
                   MakeSchedule(config.schedule, config.stages, config.micro_batches, config.chunks_per_rank));
  RETURN_IF_ERROR(CheckScheduleReachesAllParts(module, schedule));
  const std::vector<int64_t> before = Plan(module);
  ASSIGN_OR_RETURN(const Simulation simulation, SimulateInUnitTimes(schedule, ChannelEdges(module)));
  for (const auto& block : module.blocks) FramePlanner(*block).Run();
  std::vector<ChunkPlanner> planners;
  for (int chunk = 0; chunk < config.chunks(); ++chunk)
    planners.emplace_back(module, ChunkId(chunk), schedule, simulation);
  absl::flat_hash_map<int64_t, int64_t> slots_of_channel;
  for (ChunkPlanner& planner : planners) planner.PlanReceives(&slots_of_channel);
  for (ChunkPlanner& planner : planners) RETURN_IF_ERROR(planner.PlanResults(slots_of_channel));
  return Plan(module) != before;
}

absl::Status PlanBuffers::CheckAfter(const Module& module) const {
  for (const auto& block : module.blocks) RETURN_IF_ERROR(CheckNoOverlapInFrame(*block));
  for (int chunk = 0; chunk < module.config.chunks(); ++chunk) {
    RETURN_IF_ERROR(CheckNoOverlap(module, ChunkId(chunk)));
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
