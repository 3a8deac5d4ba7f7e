#include "passes/insert_grad_reducers.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/op_table.h"
#include "passes/parts.h"

namespace pipeloom {
namespace {

bool Writes(const Node& node, absl::string_view parameter) {
  const std::vector<Value*> written = WrittenOperands(node);
  return std::any_of(written.begin(), written.end(),
                     [&](const Value* operand) { return operand->parameter == parameter; });
}

using Names = absl::flat_hash_set<absl::string_view>;

// The parameters that each stage writes: a rank has one copy of each for all its chunks.
std::vector<Names> WrittenParameters(const Module& module) {
  std::vector<Names> written(static_cast<size_t>(module.config.stages));
  for (const auto& graph : module.graphs) {
    if (graph->part != Part::kUpdate) continue;
    for (const auto& node : graph->nodes()) {
      for (const Value* operand : WrittenOperands(*node)) {
        written[static_cast<size_t>(module.config.StageOf(*graph->chunk).value())].insert(operand->parameter);
      }
    }
  }
  return written;
}

bool Reads(const Module& module, ChunkId chunk, absl::string_view parameter) {
  for (Part part : {Part::kForward, Part::kBackwardInput, Part::kBackwardWeight}) {
    const Graph* graph = module.Find(chunk, part);
    if (graph != nullptr && graph->FindParameter(parameter) != nullptr) return true;
  }
  return false;
}

Value* FindOrAddParameter(Graph& graph, const Value& parameter) {
  if (Value* found = graph.FindParameter(parameter.parameter)) return found;
  return graph.AddParameter(parameter.name, parameter.parameter, parameter.type, parameter.trainable);
}

// Does the update `node` of the owner's graph `from` on `chunk` too.
absl::Status CopyUpdate(Module& module, const Graph& from, const Node& node, ChunkId chunk) {
  Graph& to = FindOrAddPart(module, chunk, Part::kUpdate);
  std::vector<Value*> operands;
  for (const Value* operand : node.operands) {
    if (operand->kind == Value::Kind::kParameter) {
      operands.push_back(FindOrAddParameter(to, *operand));
      continue;
    }
    if (operand->kind == Value::Kind::kConstant) {
      operands.push_back(to.AddConstant(operand->name, operand->type, operand->elements));
      continue;
    }
    if (operand->kind != Value::Kind::kSaved && operand->kind != Value::Kind::kBoundary) {
      return absl::UnimplementedError(absl::StrCat("the update of shared parameter ", node.operands[0]->parameter,
                                                   " reads %", operand->name, ", which chunk ", from.chunk->value(),
                                                   " makes in the update itself; only reduced gradients are sent"));
    }
    Value* joined = to.Find(operand->name);
    if (joined == nullptr) {
      // The gradient may be made here, where the owner's own use does not reach the loss.
      const bool made_here = FindProducer(module, chunk, operand->name) != nullptr;
      joined = to.AddJoined(made_here ? Value::Kind::kSaved : Value::Kind::kBoundary, operand->name, operand->type);
    }
    operands.push_back(joined);
  }
  NodeInfo info = node.info;
  info.stage = module.config.StageOf(chunk);
  to.AddTypedNode(node.op, std::move(operands), node.attributes, info, {});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> InsertGradReducers::Run(Module& module) const {
  struct Copy {
    const Graph* from;
    const Node* node;
    ChunkId chunk;
  };
  std::vector<Copy> copies;
  const std::vector<Names> written = WrittenParameters(module);
  for (const auto& graph : module.graphs) {
    if (graph->part != Part::kUpdate) continue;
    for (const auto& node : graph->nodes()) {
      if (node->operands.empty() || !Writes(*node, node->operands[0]->parameter)) continue;
      const std::string& parameter = node->operands[0]->parameter;
      absl::flat_hash_set<StageId> done;
      for (int c = 0; c < module.config.chunks(); ++c) {
        const ChunkId chunk(c);
        const StageId stage = module.config.StageOf(chunk);
        if (written[static_cast<size_t>(stage.value())].contains(parameter)) continue;
        if (!Reads(module, chunk, parameter)) continue;
        if (done.insert(stage).second) copies.push_back({graph.get(), node.get(), chunk});
      }
    }
  }
  for (const Copy& copy : copies) RETURN_IF_ERROR(CopyUpdate(module, *copy.from, *copy.node, copy.chunk));
  return !copies.empty();
}

absl::Status InsertGradReducers::CheckAfter(const Module& module) const {
  const std::vector<Names> written = WrittenParameters(module);
  for (size_t writer = 0; writer < written.size(); ++writer) {
    for (absl::string_view parameter : written[writer]) {
      for (int chunk = 0; chunk < module.config.chunks(); ++chunk) {
        const StageId stage = module.config.StageOf(ChunkId(chunk));
        if (written[static_cast<size_t>(stage.value())].contains(parameter)) continue;
        if (!Reads(module, ChunkId(chunk), parameter)) continue;
        return absl::InternalError(
            absl::StrCat("parameter ", parameter, " is updated on stage ", writer, " and not on chunk ", chunk));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace pipeloom
