#ifndef PASSES_IR_GRAPH_H_
#define PASSES_IR_GRAPH_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "kernels/base/attributes.h"
#include "kernels/base/ids.h"
#include "kernels/base/tensor_type.h"

namespace pipeloom {

struct Node;

// When a node runs: in the forward or the backward of a micro-batch, or in the update that ends a step.
enum class Phase { kForward, kBackward, kUpdate };
// How often: once a micro-batch, or once a step.
enum class Rate { kMicro, kStep };
// What part of a chunk's work a split graph is; the letters are those of the schedules. W holds the nodes that serve
// one parameter's gradient only, R what is done once a step to gradients and outputs, U the writes to parameters.
enum class Part { kForward, kBackwardInput, kBackwardWeight, kReduce, kUpdate };
inline constexpr Part kParts[] = {Part::kForward, Part::kBackwardInput, Part::kBackwardWeight, Part::kReduce,
                                  Part::kUpdate};
constexpr char PartLetter(Part part) { return "FBWRU"[static_cast<int>(part)]; }
// The part of a letter; nothing for any other text.
std::optional<Part> PartOfLetter(absl::string_view letter);

// Where plan_buffers puts a value. `index` names a buffer of the chunk or a channel; micro-batch m uses slot m % slots.
// With `first_apart`, slot 0 serves the first micro-batch (or group) only and slot 1 all later ones: an accumulator and
// the addend that is added to it.
struct Placement {
  enum class Space { kBuffer, kChannel };
  Space space = Space::kBuffer;
  int index = 0;
  int slots = 1;
  bool first_apart = false;
};

struct Value {
  enum class Kind {
    kInput,      // given by the caller at each step
    kParameter,  // named, lives over steps, may be written by update nodes and stand in several graphs
    kConstant,
    kResult,    // made by a node of this graph
    kSaved,     // made by another part of the same chunk, joined by name
    kBoundary,  // made by another chunk, joined by name
  };
  Kind kind = Kind::kResult;
  std::string name;  // unique in its graph, without the '%'
  TensorType type;
  Node* producer = nullptr;       // of a kResult
  std::optional<int> batch_axis;  // of a kInput: the axis that micro-batches divide
  std::string parameter;          // of a kParameter: its name in the network, such as layer1.weight
  bool trainable = true;          // of a kParameter
  std::vector<double> elements;   // of a kConstant: all elements, or one that all are equal to
  std::optional<Placement> placement;
};

inline bool IsParameterOrConstant(const Value* value) {
  return value->kind == Value::Kind::kParameter || value->kind == Value::Kind::kConstant;
}

// Everything about a node but op, operands and attributes.
struct NodeInfo {
  std::string cell;  // dotted path of the cell it comes from; "" for none
  std::optional<StageId> stage;
  Phase phase = Phase::kForward;
  Rate rate = Rate::kMicro;
  // Before split_stages: the chunk, where it is not the first of its stage.
  std::optional<ChunkId> chunk = {};
};

// The chunk of a node that has a stage.
inline ChunkId ChunkOf(const NodeInfo& info) { return info.chunk.value_or(ChunkId(info.stage->value())); }

struct Node {
  std::string op;
  std::vector<Value*> operands;
  std::vector<Value*> results;
  AttributeMap attributes;
  NodeInfo info;
};

// The `reduce` of an output that stands for a gradient, and that of one which is made once a step.
inline constexpr absl::string_view kGradientOutput = "gradient";
inline constexpr absl::string_view kOnceOutput = "once";

// A result of the graph. Those of the step graph say in `reduce` how the values of the micro-batches make one: "sum",
// "mean" or "concat" (along axis 0), or "once" where there is one value a step; they are numbered by `index` wherever
// the graph is split. A trainable parameter with "gradient", after all others, stands for its gradient. An output with
// an empty `reduce` joins graphs by its name.
struct Output {
  Value* value = nullptr;
  std::string reduce;
  int index = 0;
};

// Whether the output is a gradient that a host's own backward made: what is given out is its accumulator.
inline bool IsAccumulated(const Output& output) {
  const Node* producer = output.value->producer;
  return output.reduce == "sum" && producer != nullptr && producer->info.phase == Phase::kBackward &&
         producer->info.rate == Rate::kMicro;
}

// The optimizer of a graph that has no backward part yet: `differentiate` makes a node of it for each parameter.
struct UpdateRule {
  std::string op;
  AttributeMap attributes;
};

// Owns its values and its nodes; nodes stand in topological order.
class Graph {
 public:
  explicit Graph(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  // Both set in a split graph.
  std::optional<ChunkId> chunk;
  std::optional<Part> part;

  // Each makes a value with a name derived from `hint`, made unique by a suffix.
  Value* AddInput(absl::string_view hint, TensorType type, std::optional<int> batch_axis);
  Value* AddParameter(absl::string_view hint, std::string parameter, TensorType type, bool trainable);
  Value* AddConstant(absl::string_view hint, TensorType type, std::vector<double> elements);
  // A kSaved or kBoundary input.
  Value* AddJoined(Value::Kind kind, absl::string_view name, TensorType type);

  // Appends a node, or inserts it before position `at`. Its result types come from the op table, whose complaint is
  // returned with the op and the operand types; `hint` names the result (default: the op's name).
  absl::StatusOr<Node*> AddNode(absl::string_view op, std::vector<Value*> operands, AttributeMap attributes,
                                NodeInfo info, absl::string_view hint = "", std::optional<size_t> at = {});
  // The same with result types given, for ops whose types do not follow from their operands. Checks nothing.
  Node* AddTypedNode(absl::string_view op, std::vector<Value*> operands, AttributeMap attributes, NodeInfo info,
                     const std::vector<TensorType>& types, absl::string_view hint = "", std::optional<size_t> at = {});

  // A further result of a node of this graph.
  Value* AddResult(Node* node, TensorType type, absl::string_view hint);

  // Every operand and output that is `from` becomes `to`.
  void ReplaceUses(const Value* from, Value* to);
  // Removes nodes for which `dead` holds, with their results; nothing else may use these.
  void RemoveNodes(const std::vector<const Node*>& dead);
  // Removes inputs of kind kSaved and kBoundary, parameters and constants that nothing uses.
  void RemoveUnusedLeaves();

  Value* Find(absl::string_view name) const;  // nullptr where there is none
  Value* FindParameter(absl::string_view parameter) const;
  void Rename(Value* value, absl::string_view hint);

  const std::vector<Value*>& inputs() const { return inputs_; }  // kInput, kSaved, kBoundary, in order
  const std::vector<Value*>& parameters() const { return parameters_; }
  const std::vector<Value*>& constants() const { return constants_; }
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  // The caller may reorder, as long as the order stays topological.
  std::vector<std::unique_ptr<Node>>& mutable_nodes() { return nodes_; }

  std::vector<Output> outputs;
  std::optional<UpdateRule> update;

 private:
  Value* NewValue(Value::Kind kind, absl::string_view hint, TensorType type);
  std::string UniqueName(absl::string_view hint);
  void ForgetName(const Value* value);

  std::string name_;
  absl::flat_hash_map<std::string, std::unique_ptr<Value>> values_;
  absl::flat_hash_map<std::string, int> taken_below_;  // hint -> n: its suffixes 1 to n - 1 are names of values
  absl::flat_hash_map<std::string, Value*> parameter_of_name_;
  std::vector<Value*> inputs_;
  std::vector<Value*> parameters_;
  std::vector<Value*> constants_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

struct Use {
  Node* node;
  int operand;
};

// The uses of every value by nodes, in program order; a snapshot. Outputs are not uses.
using UseMap = absl::flat_hash_map<const Value*, std::vector<Use>>;
UseMap ComputeUses(const Graph& graph);
const std::vector<Use>& UsesOf(const UseMap& uses, const Value* value);

}  // namespace pipeloom

#endif  // PASSES_IR_GRAPH_H_
