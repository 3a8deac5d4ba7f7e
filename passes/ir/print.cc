#include "passes/ir/print.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/ir/op_table.h"

namespace pipeloom {
namespace {

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", absl::CEscape(text), "\""); }

std::string Name(absl::string_view text) { return IsPlainWord(text) ? std::string(text) : Quoted(text); }

// " {a=1}", or nothing.
std::string Attributes(const AttributeMap& attributes) {
  return attributes.empty() ? "" : absl::StrCat(" ", AttributesToString(attributes));
}

std::string PlacementText(const std::optional<Placement>& placement) {
  if (!placement) return "none";
  return absl::StrCat(kSpaceNames[static_cast<int>(placement->space)], " ", placement->index, " x ", placement->slots,
                      placement->first_apart ? " first_apart" : "");
}

std::string InputText(const Value& value) {
  std::string text = absl::StrCat(ValueName(value), ": ", value.type.ToString());
  if (value.kind == Value::Kind::kSaved) absl::StrAppend(&text, " saved");
  if (value.kind == Value::Kind::kBoundary) absl::StrAppend(&text, " boundary");
  if (value.kind == Value::Kind::kInput && value.batch_axis) {
    absl::StrAppend(&text, " {batch_axis=", *value.batch_axis, "}");
  }
  if (value.placement) absl::StrAppend(&text, " ", PlacementText(value.placement));
  return text;
}

std::string OutputText(const Output& output) {
  AttributeMap attributes;
  if (output.index != 0) attributes["index"] = int64_t{output.index};
  if (!output.reduce.empty()) attributes["reduce"] = output.reduce;
  return absl::StrCat(ValueName(*output.value), Attributes(attributes));
}

std::string ElementText(DType dtype, double element) {
  // Beyond 2^53 not every integer is a double, and the digits would promise more than the element holds.
  constexpr double kLargest = 9007199254740992.0;
  if (!Info(dtype).floating && std::trunc(element) == element && std::abs(element) <= kLargest) {
    return AttributeToString(static_cast<int64_t>(element));
  }
  return AttributeToString(element);
}

std::string ElementsText(const Value& constant) {
  if (constant.elements.size() == 1) return ElementText(constant.type.dtype, constant.elements[0]);
  std::vector<std::string> elements;
  elements.reserve(constant.elements.size());
  for (double element : constant.elements) elements.push_back(ElementText(constant.type.dtype, element));
  return absl::StrCat("[", absl::StrJoin(elements, ", "), "]");
}

std::string LeafText(const Value& value) {
  const bool is_parameter = value.kind == Value::Kind::kParameter;
  const std::string what =
      is_parameter ? absl::StrCat("param ", Quoted(value.parameter), value.trainable ? "" : " {trainable=false}")
                   : absl::StrCat("constant ", ElementsText(value));
  return absl::StrCat(ValueName(value), " = ", what, " : ", value.type.ToString(),
                      value.placement ? absl::StrCat("  // ", PlacementText(value.placement)) : "");
}

std::string InfoText(const Node& node) {
  std::vector<std::string> items;
  const NodeInfo& info = node.info;
  if (!info.cell.empty()) items.push_back(IsReservedAfterNode(info.cell) ? Quoted(info.cell) : Name(info.cell));
  if (info.stage) items.push_back(absl::StrCat("stage ", info.stage->value()));
  if (info.chunk) items.push_back(absl::StrCat("chunk ", info.chunk->value()));
  items.emplace_back(kPhaseNames[static_cast<int>(info.phase)]);
  if (info.rate != UsualRate(info.phase)) items.emplace_back(kRateNames[static_cast<int>(info.rate)]);
  if (std::any_of(node.results.begin(), node.results.end(), [](const Value* v) { return v->placement.has_value(); })) {
    for (const Value* result : node.results) items.push_back(PlacementText(result->placement));
  }
  return absl::StrJoin(items, ", ");
}

std::string TypesText(const Node& node) {
  if (node.results.empty()) return FindOp(node.op) == nullptr ? " : ()" : "";
  return absl::StrCat(" : ", absl::StrJoin(node.results, ", ", [](std::string* out, const Value* result) {
                        out->append(result->type.ToString());
                      }));
}

std::string PrintAs(absl::string_view keyword, const Graph& graph) {
  std::string text = absl::StrCat(
      keyword, " ", GraphTitle(graph), "(",
      absl::StrJoin(graph.inputs(), ", ", [](std::string* out, const Value* v) { out->append(InputText(*v)); }),
      ") -> (",
      absl::StrJoin(graph.outputs, ", ", [](std::string* out, const Output& o) { out->append(OutputText(o)); }),
      ") {\n");
  for (const Value* value : graph.parameters()) absl::StrAppend(&text, "  ", LeafText(*value), "\n");
  for (const Value* value : graph.constants()) absl::StrAppend(&text, "  ", LeafText(*value), "\n");
  for (const auto& node : graph.nodes()) absl::StrAppend(&text, "  ", Print(*node), "\n");
  absl::StrAppend(&text, "}");
  if (graph.update) absl::StrAppend(&text, " update ", Name(graph.update->op), Attributes(graph.update->attributes));
  return text + "\n";
}

}  // namespace

bool IsPlainWord(absl::string_view text) {
  // "->" and a number's sign begin with '-': a name does not, and the lexer need not guess.
  return !text.empty() && text[0] != '-' && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_.+-", c);
  });
}

bool IsReservedAfterNode(absl::string_view word) {
  const auto in = [word](const auto& names) {
    return std::find(std::begin(names), std::end(names), word) != std::end(names);
  };
  return word == "stage" || word == "chunk" || word == "none" || in(kPhaseNames) || in(kRateNames) || in(kSpaceNames);
}

std::string ValueName(const Value& value) { return absl::StrCat("%", Name(value.name)); }

std::string GraphTitle(const Graph& graph) {
  std::string title = absl::StrCat("@", Name(graph.name()));
  if (graph.chunk) absl::StrAppend(&title, " chunk ", graph.chunk->value());
  if (graph.part) absl::StrAppend(&title, graph.chunk ? " " : " part ", std::string(1, PartLetter(*graph.part)));
  return title;
}

std::string Print(const Node& node) {
  const auto names = [](const std::vector<Value*>& values) {
    return absl::StrJoin(values, ", ", [](std::string* out, const Value* value) { out->append(ValueName(*value)); });
  };
  return absl::StrCat(names(node.results), node.results.empty() ? "" : " = ", Name(node.op), "(", names(node.operands),
                      ")", Attributes(node.attributes), TypesText(node), "  // ", InfoText(node));
}

std::string Print(const Graph& graph) { return PrintAs("graph", graph); }

std::string Print(const Module& module) {
  const PipelineConfig& config = module.config;
  AttributeMap attributes = {{"stages", int64_t{config.stages}},
                             {"micro_batches", int64_t{config.micro_batches}},
                             {"schedule", config.schedule},
                             {"threads", int64_t{config.threads}}};
  if (config.chunks_per_rank != 1) attributes["chunks_per_rank"] = int64_t{config.chunks_per_rank};
  if (config.deal_cells) attributes["deal_cells"] = true;
  std::string text = absl::StrCat("pipeline", Attributes(attributes), "\n");
  for (const auto& [cell, stage] : config.stage_of_cell) {
    absl::StrAppend(&text, "stage ", Quoted(cell), " = ", stage.value(), "\n");
  }
  for (const auto& block : module.blocks) absl::StrAppend(&text, "\n", PrintAs("block", *block));
  for (const auto& graph : module.graphs) absl::StrAppend(&text, "\n", Print(*graph));
  return text;
}

}  // namespace pipeloom
