#include "passes/ir/parse.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/lexer.h"
#include "passes/ir/op_table.h"
#include "passes/ir/print.h"
#include "passes/ir/token_reader.h"

namespace pipeloom {
namespace {

// The position of `word` in a table of names, as the enum that the table is for.
template <typename Enum, size_t kSize>
std::optional<Enum> FindName(const absl::string_view (&names)[kSize], const Token& token) {
  if (token.kind != Token::Kind::kWord) return std::nullopt;
  const auto* found = std::find(std::begin(names), std::end(names), token.text);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<Enum>(found - std::begin(names));
}

// The attribute `name` taken out of `attributes`; nullopt where it is absent.
template <typename T>
absl::StatusOr<std::optional<T>> Take(AttributeMap& attributes, absl::string_view name, const Token& at) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return std::optional<T>();
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) {
    return ErrorAt(at, absl::StrCat(name, " is of another type than ", AttributeToString(found->second)));
  }
  std::optional<T> result = *value;
  attributes.erase(found);
  return result;
}

// Refuses attributes that nobody took.
absl::Status NoneLeft(const AttributeMap& attributes, absl::string_view choices, const Token& at) {
  if (attributes.empty()) return absl::OkStatus();
  return ErrorAt(at, absl::StrCat("unknown attribute ", attributes.begin()->first, "; choose of ", choices));
}

absl::StatusOr<int> NarrowToInt(int64_t value, const Token& at) {
  if (value != static_cast<int>(value)) return ErrorAt(at, absl::StrCat(value, " does not fit 32 bits"));
  return static_cast<int>(value);
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : in_(std::move(tokens)) {}

  absl::StatusOr<Module> ParseModule() {
    Module module;
    if (in_.AcceptWord("pipeline")) RETURN_IF_ERROR(ParseConfig(module.config));
    while (in_.AcceptWord("stage")) {
      ASSIGN_OR_RETURN(const Token cell, in_.ExpectKind(Token::Kind::kString, "the path of a cell in quotes"));
      RETURN_IF_ERROR(in_.Expect("="));
      ASSIGN_OR_RETURN(const int stage, in_.ExpectInt());
      module.config.stage_of_cell.emplace_back(cell.text, StageId(stage));
    }
    while (in_.Peek().kind != Token::Kind::kEnd) {
      const bool is_block = in_.AcceptWord("block");
      if (!is_block && !in_.AcceptWord("graph")) {
        return ErrorAt(in_.Peek(), "expected 'block', 'graph' or the end of the text");
      }
      ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, ParseGraph());
      (is_block ? module.blocks : module.graphs).push_back(std::move(graph));
    }
    return module;
  }

 private:
  absl::Status ParseConfig(PipelineConfig& config) {
    const Token at = in_.Peek();
    ASSIGN_OR_RETURN(AttributeMap attributes, in_.OptionalAttributes());
    const std::pair<absl::string_view, int*> counts[] = {{"micro_batches", &config.micro_batches},
                                                         {"stages", &config.stages},
                                                         {"threads", &config.threads},
                                                         {"chunks_per_rank", &config.chunks_per_rank}};
    for (const auto& [name, target] : counts) {
      ASSIGN_OR_RETURN(const std::optional<int64_t> count, Take<int64_t>(attributes, name, at));
      if (!count) continue;
      ASSIGN_OR_RETURN(*target, NarrowToInt(*count, at));
    }
    ASSIGN_OR_RETURN(const std::optional<std::string> schedule, Take<std::string>(attributes, "schedule", at));
    if (schedule) config.schedule = *schedule;
    ASSIGN_OR_RETURN(const std::optional<bool> deal_cells, Take<bool>(attributes, "deal_cells", at));
    if (deal_cells) config.deal_cells = *deal_cells;
    return NoneLeft(attributes, "chunks_per_rank, deal_cells, micro_batches, schedule, stages, threads", at);
  }

  absl::StatusOr<std::unique_ptr<Graph>> ParseGraph() {
    ASSIGN_OR_RETURN(const Token name, in_.ExpectKind(Token::Kind::kGraph, "the name of the graph, such as @step"));
    auto graph = std::make_unique<Graph>(name.text);
    if (in_.AcceptWord("chunk")) {
      ASSIGN_OR_RETURN(const int chunk, in_.ExpectInt());
      graph->chunk = ChunkId(chunk);
      RETURN_IF_ERROR(ParsePart(*graph));
    } else if (in_.AcceptWord("part")) {
      RETURN_IF_ERROR(ParsePart(*graph));
    }
    RETURN_IF_ERROR(in_.Expect("("));
    while (!in_.PeekIs(")")) {
      if (!graph->inputs().empty()) RETURN_IF_ERROR(in_.Expect(","));
      RETURN_IF_ERROR(ParseInput(*graph));
    }
    RETURN_IF_ERROR(in_.Expect(")"));
    RETURN_IF_ERROR(in_.Expect("->"));
    ASSIGN_OR_RETURN(const std::vector<WrittenOutput> outputs, ParseOutputs());
    RETURN_IF_ERROR(in_.Expect("{"));
    while (!in_.Accept("}")) RETURN_IF_ERROR(ParseLine(*graph));
    for (const WrittenOutput& output : outputs) {
      ASSIGN_OR_RETURN(Value * value, Find(*graph, output.value));
      graph->outputs.push_back({value, output.reduce, output.index});
    }
    if (in_.AcceptWord("update")) {
      ASSIGN_OR_RETURN(std::string op, in_.ExpectName("the name of an optimizer's op"));
      ASSIGN_OR_RETURN(AttributeMap attributes, in_.OptionalAttributes());
      graph->update = UpdateRule{std::move(op), std::move(attributes)};
    }
    return graph;
  }

  absl::Status ParsePart(Graph& graph) {
    const Token& letter = in_.Next();
    for (Part part : kParts) {
      if (letter.kind != Token::Kind::kWord || letter.text != std::string(1, PartLetter(part))) continue;
      graph.part = part;
      return absl::OkStatus();
    }
    return ErrorAt(letter, "expected a part of the chunk's work: F, B, W, R or U");
  }

  absl::Status ParseInput(Graph& graph) {
    ASSIGN_OR_RETURN(const Token name, NewName(graph));
    RETURN_IF_ERROR(in_.Expect(":"));
    ASSIGN_OR_RETURN(const TensorType type, in_.ExpectType());
    Value* input = nullptr;
    if (in_.AcceptWord("saved")) {
      input = graph.AddJoined(Value::Kind::kSaved, name.text, type);
    } else if (in_.AcceptWord("boundary")) {
      input = graph.AddJoined(Value::Kind::kBoundary, name.text, type);
    } else {
      const Token at = in_.Peek();
      ASSIGN_OR_RETURN(AttributeMap attributes, in_.OptionalAttributes());
      ASSIGN_OR_RETURN(const std::optional<int64_t> written, Take<int64_t>(attributes, "batch_axis", at));
      RETURN_IF_ERROR(NoneLeft(attributes, "batch_axis", at));
      std::optional<int> axis;
      if (written) {
        ASSIGN_OR_RETURN(axis, NarrowToInt(*written, at));
      }
      input = graph.AddInput(name.text, type, axis);
    }
    if (in_.PeekIs(",") || in_.PeekIs(")")) return absl::OkStatus();
    return ParsePlacement(*input);
  }

  // Outputs stand before the lines that define them.
  struct WrittenOutput {
    Token value;
    std::string reduce;
    int index;
  };

  absl::StatusOr<std::vector<WrittenOutput>> ParseOutputs() {
    std::vector<WrittenOutput> outputs;
    RETURN_IF_ERROR(in_.Expect("("));
    while (!in_.PeekIs(")")) {
      if (!outputs.empty()) RETURN_IF_ERROR(in_.Expect(","));
      ASSIGN_OR_RETURN(const Token value, in_.ExpectKind(Token::Kind::kValue, "an output such as %loss"));
      const Token at = in_.Peek();
      ASSIGN_OR_RETURN(AttributeMap attributes, in_.OptionalAttributes());
      ASSIGN_OR_RETURN(const std::optional<std::string> reduce, Take<std::string>(attributes, "reduce", at));
      ASSIGN_OR_RETURN(const std::optional<int64_t> written, Take<int64_t>(attributes, "index", at));
      RETURN_IF_ERROR(NoneLeft(attributes, "index, reduce", at));
      ASSIGN_OR_RETURN(const int index, NarrowToInt(written.value_or(0), at));
      outputs.push_back({value, reduce.value_or(""), index});
    }
    RETURN_IF_ERROR(in_.Expect(")"));
    return outputs;
  }

  // A parameter, a constant or a node.
  absl::Status ParseLine(Graph& graph) {
    std::vector<Token> results;
    while (in_.Peek().kind == Token::Kind::kValue) {
      ASSIGN_OR_RETURN(const Token result, NewName(graph));
      if (std::any_of(results.begin(), results.end(), [&](const Token& other) { return other.text == result.text; })) {
        return ErrorAt(result, "this value is defined twice");
      }
      results.push_back(result);
      if (!in_.Accept(",")) break;
    }
    if (!results.empty()) RETURN_IF_ERROR(in_.Expect("="));
    if (results.size() == 1 && !in_.PeekIs("(", 1)) {
      if (in_.AcceptWord("param")) return ParseParameter(graph, results[0]);
      if (in_.AcceptWord("constant")) return ParseConstant(graph, results[0]);
    }
    return ParseNode(graph, results);
  }

  absl::Status ParseParameter(Graph& graph, const Token& name) {
    ASSIGN_OR_RETURN(const Token parameter, in_.ExpectKind(Token::Kind::kString, "the parameter's name in quotes"));
    const Token at = in_.Peek();
    ASSIGN_OR_RETURN(AttributeMap attributes, in_.OptionalAttributes());
    ASSIGN_OR_RETURN(const std::optional<bool> trainable, Take<bool>(attributes, "trainable", at));
    RETURN_IF_ERROR(NoneLeft(attributes, "trainable", at));
    RETURN_IF_ERROR(in_.Expect(":"));
    ASSIGN_OR_RETURN(const TensorType type, in_.ExpectType());
    Value* value = graph.AddParameter(name.text, parameter.text, type, trainable.value_or(true));
    return in_.Accept("//") ? ParsePlacement(*value) : absl::OkStatus();
  }

  absl::Status ParseConstant(Graph& graph, const Token& name) {
    std::vector<double> elements;
    if (in_.Accept("[")) {
      while (!in_.PeekIs("]")) {
        if (!elements.empty()) RETURN_IF_ERROR(in_.Expect(","));
        ASSIGN_OR_RETURN(const double element, in_.ExpectDouble());
        elements.push_back(element);
      }
      RETURN_IF_ERROR(in_.Expect("]"));
    } else {
      ASSIGN_OR_RETURN(const double element, in_.ExpectDouble());
      elements.push_back(element);
    }
    RETURN_IF_ERROR(in_.Expect(":"));
    ASSIGN_OR_RETURN(const TensorType type, in_.ExpectType());
    Value* value = graph.AddConstant(name.text, type, std::move(elements));
    return in_.Accept("//") ? ParsePlacement(*value) : absl::OkStatus();
  }

  absl::Status ParseNode(Graph& graph, const std::vector<Token>& results) {
    const Token at = in_.Peek();
    ASSIGN_OR_RETURN(const std::string op, in_.ExpectName("the name of an op, 'param' or 'constant'"));
    std::vector<Value*> operands;
    RETURN_IF_ERROR(in_.Expect("("));
    while (!in_.PeekIs(")")) {
      if (!operands.empty()) RETURN_IF_ERROR(in_.Expect(","));
      ASSIGN_OR_RETURN(const Token operand, in_.ExpectKind(Token::Kind::kValue, "an operand such as %a"));
      ASSIGN_OR_RETURN(Value * value, Find(graph, operand));
      operands.push_back(value);
    }
    RETURN_IF_ERROR(in_.Expect(")"));
    ASSIGN_OR_RETURN(AttributeMap attributes, in_.OptionalAttributes());
    ASSIGN_OR_RETURN(const std::vector<TensorType> types, ParseTypes(at, op, results.size()));
    RETURN_IF_ERROR(CheckTypes(at, op, operands, attributes, types));
    // One hint names all results, so that of several gets one that is longer than any of their names: no name that is
    // still to be given is taken meanwhile.
    const std::string hint = absl::StrJoin(results, "", [](std::string* out, const Token& t) { out->append(t.text); });
    Node* node = graph.AddTypedNode(op, std::move(operands), std::move(attributes), {}, types, hint);
    for (size_t i = 0; i < results.size(); ++i) graph.Rename(node->results[i], results[i].text);
    return in_.Accept("//") ? ParseInfo(*node) : absl::OkStatus();
  }

  absl::StatusOr<std::vector<TensorType>> ParseTypes(const Token& at, absl::string_view op, size_t results) {
    std::vector<TensorType> types;
    if (results == 0 && in_.PeekIs("(", 1) && in_.Accept(":")) {
      RETURN_IF_ERROR(in_.Expect("("));
      RETURN_IF_ERROR(in_.Expect(")"));
    } else if (results == 0) {
      if (FindOp(op) != nullptr) return types;
      return ErrorAt(at, "the op table has no such op; a host op needs its result types written, ': ()' for none");
    } else {
      RETURN_IF_ERROR(in_.Expect(":"));
    }
    for (size_t i = 0; i < results; ++i) {
      if (i > 0) RETURN_IF_ERROR(in_.Expect(","));
      ASSIGN_OR_RETURN(TensorType type, in_.ExpectType());
      types.push_back(std::move(type));
    }
    return types;
  }

  static absl::Status CheckTypes(const Token& at, absl::string_view op, const std::vector<Value*>& operands,
                                 const AttributeMap& attributes, const std::vector<TensorType>& written) {
    const OpDef* def = FindOp(op);
    if (def == nullptr || def->traits.typed) return absl::OkStatus();
    std::vector<TensorType> operand_types;
    for (const Value* operand : operands) operand_types.push_back(operand->type);
    const absl::StatusOr<std::vector<TensorType>> inferred = InferTypes(op, operand_types, attributes);
    if (!inferred.ok()) return ErrorAt(at, inferred.status().message());
    if (*inferred == written) return absl::OkStatus();
    const auto text = [](const std::vector<TensorType>& types) {
      return types.empty() ? "no result" : absl::StrJoin(types, ", ", [](std::string* out, const TensorType& type) {
        out->append(type.ToString());
      });
    };
    return ErrorAt(at, absl::StrCat("gives ", text(*inferred), ", but ", text(written), " is written"));
  }

  // What follows `//`, in this order: cell, stage, phase, rate, placements.
  absl::Status ParseInfo(Node& node) {
    const bool cell_is_word = in_.Peek().kind == Token::Kind::kWord && !IsReservedAfterNode(in_.Peek().text);
    if (cell_is_word || in_.Peek().kind == Token::Kind::kString) {
      node.info.cell = in_.Next().text;
      RETURN_IF_ERROR(in_.Expect(","));
    }
    if (in_.AcceptWord("stage")) {
      ASSIGN_OR_RETURN(const int stage, in_.ExpectInt());
      node.info.stage = StageId(stage);
      RETURN_IF_ERROR(in_.Expect(","));
    }
    if (in_.AcceptWord("chunk")) {
      ASSIGN_OR_RETURN(const int chunk, in_.ExpectInt());
      node.info.chunk = ChunkId(chunk);
      RETURN_IF_ERROR(in_.Expect(","));
    }
    const std::optional<Phase> phase = FindName<Phase>(kPhaseNames, in_.Peek());
    if (!phase) return ErrorAt(in_.Peek(), "expected forward, backward or update");
    in_.Next();
    node.info.phase = *phase;
    node.info.rate = UsualRate(*phase);
    if (!in_.Accept(",")) return absl::OkStatus();
    if (const std::optional<Rate> rate = FindName<Rate>(kRateNames, in_.Peek())) {
      in_.Next();
      node.info.rate = *rate;
      if (!in_.Accept(",")) return absl::OkStatus();
    }
    if (node.results.empty()) return ErrorAt(in_.Peek(), "this node has no result that could be placed");
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (i > 0) RETURN_IF_ERROR(in_.Expect(","));
      if (!in_.AcceptWord("none")) RETURN_IF_ERROR(ParsePlacement(*node.results[i]));
    }
    return absl::OkStatus();
  }

  absl::Status ParsePlacement(Value& value) {
    const std::optional<Placement::Space> space = FindName<Placement::Space>(kSpaceNames, in_.Peek());
    if (!space) {
      return ErrorAt(in_.Peek(), absl::StrCat("expected a placement: one of ", absl::StrJoin(kSpaceNames, ", ")));
    }
    in_.Next();
    Placement placement;
    placement.space = *space;
    ASSIGN_OR_RETURN(placement.index, in_.ExpectInt());
    RETURN_IF_ERROR(in_.ExpectWord("x"));
    ASSIGN_OR_RETURN(placement.slots, in_.ExpectInt());
    placement.first_apart = in_.AcceptWord("first_apart");
    value.placement = placement;
    return absl::OkStatus();
  }

  absl::StatusOr<Token> NewName(const Graph& graph) {
    ASSIGN_OR_RETURN(const Token name, in_.ExpectKind(Token::Kind::kValue, "a value such as %a"));
    if (graph.Find(name.text) != nullptr) return ErrorAt(name, "this value is defined twice");
    return name;
  }

  static absl::StatusOr<Value*> Find(const Graph& graph, const Token& name) {
    Value* value = graph.Find(name.text);
    if (value == nullptr) return ErrorAt(name, "no line above defines this value");
    return value;
  }

  TokenReader in_;
};

}  // namespace

absl::StatusOr<Module> Parse(absl::string_view text) {
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Lex(text));
  return Parser(std::move(tokens)).ParseModule();
}

}  // namespace pipeloom
