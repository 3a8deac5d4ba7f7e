#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/ir/op_table.h"
#include "passes/ir/parse.h"
#include "passes/ir/print.h"
#include "passes/ir/verify.h"
#include "tests/ir/texts.h"

namespace pipeloom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Module ParseOrDie(absl::string_view text) {
  absl::StatusOr<Module> module = Parse(text);
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? *std::move(module) : Module();
}

// A module whose one graph has `lines` and the input %x.
std::string WithLines(absl::string_view lines) {
  return absl::StrCat("graph @g(%x: f32[2,3]) -> () {\n", lines, "\n}\n");
}

std::string ErrorOf(absl::string_view text) {
  const absl::Status status = Parse(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

class RoundTrip : public ::testing::TestWithParam<const char*> {};

TEST_P(RoundTrip, PrintsWhatItParsed) { EXPECT_EQ(Print(ParseOrDie(GetParam())), GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, RoundTrip, ::testing::Values(kStepText, kSplitText, kOddText, kBlockText));

TEST(Parse, ReadsConfig) {
  const PipelineConfig config = ParseOrDie(kStepText).config;
  EXPECT_EQ(config.stages, 2);
  EXPECT_EQ(config.micro_batches, 4);
  EXPECT_EQ(config.schedule, "1f1b");
  EXPECT_EQ(config.threads, 1);
  EXPECT_THAT(config.stage_of_cell,
              ElementsAre(std::make_pair("layer1", StageId(0)), std::make_pair("layer2", StageId(1))));
}

TEST(Parse, LeavesDefaultsWhereNothingIsWritten) {
  const PipelineConfig config = ParseOrDie("graph @g() -> () {}").config;
  EXPECT_EQ(config.stages, PipelineConfig().stages);
  EXPECT_EQ(config.micro_batches, PipelineConfig().micro_batches);
  EXPECT_EQ(config.schedule, PipelineConfig().schedule);
  const Module module = ParseOrDie(WithLines("%y = relu(%x) : f32[2,3]"));
  const NodeInfo& info = module.graphs[0]->nodes()[0]->info;
  EXPECT_EQ(info.cell, "");
  EXPECT_FALSE(info.stage.has_value());
  EXPECT_EQ(info.phase, Phase::kForward);
  EXPECT_EQ(info.rate, Rate::kMicro);
}

TEST(Parse, ReadsTheStepGraph) {
  const Module module = ParseOrDie(kStepText);
  ASSERT_EQ(module.graphs.size(), 1u);
  const Graph& graph = *module.graphs[0];
  EXPECT_EQ(graph.name(), "step");
  EXPECT_FALSE(graph.chunk.has_value());
  EXPECT_FALSE(graph.part.has_value());
  ASSERT_EQ(graph.inputs().size(), 2u);
  EXPECT_EQ(graph.inputs()[1]->name, "label");
  EXPECT_EQ(graph.inputs()[1]->type, (TensorType{DType::kInt32, {8}}));
  EXPECT_EQ(graph.inputs()[1]->batch_axis, 0);
  ASSERT_EQ(graph.parameters().size(), 2u);
  EXPECT_TRUE(graph.parameters()[0]->trainable);
  EXPECT_FALSE(graph.parameters()[1]->trainable);
  EXPECT_EQ(graph.parameters()[1]->parameter, "layer2.weight");
  ASSERT_EQ(graph.nodes().size(), 3u);
  const Node& h = *graph.nodes()[0];
  EXPECT_EQ(h.op, "matmul");
  EXPECT_THAT(h.operands, ElementsAre(graph.Find("image"), graph.Find("w1")));
  EXPECT_EQ(h.results[0]->producer, &h);
  EXPECT_EQ(GetInt(h.attributes, "group", 0), 4);
  EXPECT_EQ(GetString(h.attributes, "kernel", ""), "brg");
  EXPECT_EQ(h.info.cell, "layer1");
  EXPECT_EQ(h.info.stage, StageId(0));
  ASSERT_EQ(graph.outputs.size(), 2u);
  EXPECT_EQ(graph.outputs[0].value, graph.Find("loss"));
  EXPECT_EQ(graph.outputs[0].reduce, "sum");
  EXPECT_EQ(graph.outputs[0].index, 0);
  EXPECT_EQ(graph.outputs[1].index, 1);
  ASSERT_TRUE(graph.update.has_value());
  EXPECT_EQ(graph.update->op, "sgd");
  EXPECT_EQ(GetDouble(graph.update->attributes, "lr", 0), 0.01);
}

TEST(Parse, ReadsSplitGraphs) {
  const Module module = ParseOrDie(kSplitText);
  ASSERT_EQ(module.graphs.size(), 4u);
  const Graph* weights = module.Find(ChunkId(0), Part::kBackwardWeight);
  ASSERT_EQ(weights, module.graphs[1].get());
  EXPECT_EQ(weights->inputs()[0]->kind, Value::Kind::kSaved);
  EXPECT_EQ(weights->inputs()[1]->kind, Value::Kind::kBoundary);
  EXPECT_EQ(weights->inputs()[1]->placement->space, Placement::Space::kChannel);
  EXPECT_EQ(weights->constants()[0]->placement->index, 3);
  const Placement placement = *weights->Find("d.w")->placement;
  EXPECT_EQ(placement.space, Placement::Space::kBuffer);
  EXPECT_EQ(placement.index, 2);
  EXPECT_EQ(placement.slots, 2);
  EXPECT_TRUE(placement.first_apart);
  EXPECT_FALSE(weights->Find("d.c")->placement.has_value());
  const Graph& forward = *module.Find(ChunkId(1), Part::kForward);
  EXPECT_TRUE(forward.Find("p")->placement.has_value());
  EXPECT_FALSE(forward.Find("q")->placement.has_value());
  EXPECT_EQ(forward.Find("p")->producer, forward.Find("q")->producer);
  EXPECT_FALSE(GetBool(forward.Find("p")->producer->attributes, "deep", true));
  EXPECT_TRUE(GetBool(forward.Find("p")->producer->attributes, "wide", false));
}

TEST(Parse, ReadsOddNamesAndNumbers) {
  const Module module = ParseOrDie(kOddText);
  const Graph& graph = *module.graphs[0];
  EXPECT_EQ(graph.name(), "no graph");
  EXPECT_NE(graph.Find("the input"), nullptr);
  EXPECT_EQ(graph.parameters()[0]->parameter, "\xc3\xa9");
  EXPECT_EQ(graph.Find("f")->elements[0], 1e-45);
  EXPECT_TRUE(std::signbit(graph.Find("f")->elements[2]));
  EXPECT_EQ(graph.Find("special")->elements[1], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(graph.Find("none")->elements.empty());
  const Node& host = *graph.nodes()[0];
  EXPECT_EQ(host.op, "host op");
  EXPECT_EQ(host.info.cell, "stage");
  EXPECT_EQ(host.info.phase, Phase::kBackward);
  EXPECT_EQ(host.info.rate, Rate::kStep);
  EXPECT_EQ(GetString(host.attributes, "text", ""), "\"\\\n");
  EXPECT_EQ(host.results[1]->name, "a.1.1");
  EXPECT_EQ(graph.nodes()[1]->info.rate, Rate::kMicro);
}

TEST(Parse, TakesAnyLayoutAndSkipsComments) {
  const std::string text = absl::StrCat(
      "# first\n\n  # second, \"open\n",
      absl::StrReplaceAll(kSplitText, {{"\n}", "\n\n# last line\n  }"}, {"(", "( "}, {", ", " ,\t"}, {" : ", ":"}}));
  EXPECT_EQ(Print(ParseOrDie(text)), kSplitText);
}

// Names of results are given one after the other; none may be taken by another's while it waits.
TEST(Parse, KeepsNamesOfSeveralResults) {
  for (absl::string_view names : {"%a, %a.2, %a.1", "%a.1, %a", "%a, %aa, %aaa", "%x.1, %x.2", "%ab, %a, %b"}) {
    const std::string line = absl::StrCat("  ", names, " = host(%x) : f32[], f32[]",
                                          std::count(names.begin(), names.end(), ',') == 2 ? ", f32[]" : "");
    EXPECT_THAT(Print(ParseOrDie(WithLines(line))), HasSubstr(line));
  }
}

TEST(Print, QuotesEveryReservedCell) {
  for (absl::string_view cell : {"stage", "none", "forward", "backward", "update", "micro", "step", "buffer", "channel",
                                 "input", "a b", "a,b", "//", "-1"}) {
    Graph graph("g");
    Value* x = graph.AddInput("x", {DType::kFloat32, {2}}, {});
    NodeInfo info;
    info.cell = std::string(cell);
    ASSERT_TRUE(graph.AddNode("relu", {x}, {}, info).ok());
    const Module module = ParseOrDie(Print(graph));
    ASSERT_EQ(module.graphs.size(), 1u) << cell;
    EXPECT_EQ(module.graphs[0]->nodes()[0]->info.cell, cell);
  }
}

TEST(Print, KeepsEveryPartPhaseAndRate) {
  for (Part part : kParts) {
    for (Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
      for (Rate rate : {Rate::kMicro, Rate::kStep}) {
        Graph graph("g");
        graph.chunk = ChunkId(3);
        graph.part = part;
        graph.AddTypedNode("barrier", {}, {}, {"cell", StageId(2), phase, rate}, {});
        const Module module = ParseOrDie(Print(graph));
        ASSERT_EQ(module.graphs.size(), 1u);
        EXPECT_EQ(module.graphs[0]->chunk, ChunkId(3));
        EXPECT_EQ(module.graphs[0]->part, part);
        EXPECT_EQ(module.graphs[0]->nodes()[0]->info.phase, phase);
        EXPECT_EQ(module.graphs[0]->nodes()[0]->info.rate, rate);
        EXPECT_EQ(module.graphs[0]->nodes()[0]->info.stage, StageId(2));
      }
    }
  }
}

TEST(Parse, NamesThePlaceTheTextAndWhatIsExpected) {
  EXPECT_EQ(ErrorOf("grapf @g"), "line 1, column 1: 'grapf': expected 'block', 'graph' or the end of the text");
  EXPECT_EQ(ErrorOf("\n  graph g"), "line 2, column 9: 'g': expected the name of the graph, such as @step");
  EXPECT_EQ(ErrorOf("graph @g() -> () {"),
            "line 1, column 19: end of text: expected the name of an op, 'param' or "
            "'constant'");
  EXPECT_EQ(ErrorOf("graph @g chunk 0 X() -> () {}"),
            "line 1, column 18: 'X': expected a part of the chunk's work: F, B, W, R or U");
  EXPECT_EQ(ErrorOf("graph @g(%x: bf16[2]) -> () {}"),
            "line 1, column 14: 'bf16': unknown element type 'bf16'; choose one of f32, i32, i64, bool");
  EXPECT_EQ(ErrorOf("graph @g(%x: f32[-1]) -> () {}"), "line 1, column 18: '-1': an extent is 0 or more");
  EXPECT_EQ(ErrorOf("graph @g(%x: f32[2] {axis=0}) -> () {}"),
            "line 1, column 21: '{': unknown attribute axis; choose of batch_axis");
  EXPECT_EQ(ErrorOf("graph @g(%x: f32[], %x: f32[]) -> () {}"), "line 1, column 21: '%x': this value is defined twice");
  EXPECT_EQ(ErrorOf("graph @g() -> (%y) {}"), "line 1, column 16: '%y': no line above defines this value");
  EXPECT_EQ(ErrorOf("pipeline {stages=\"2\"}"), "line 1, column 10: '{': stages is of another type than \"2\"");
  EXPECT_EQ(ErrorOf("pipeline {stagse=2}"),
            "line 1, column 10: '{': unknown attribute stagse; choose of chunks_per_rank, deal_cells, micro_batches, "
            "schedule, stages, threads");
  EXPECT_EQ(ErrorOf("stage layer1 = 0"), "line 1, column 7: 'layer1': expected the path of a cell in quotes");
  EXPECT_EQ(ErrorOf("stage \"layer1"), "line 1, column 7: '\\\"layer1': expected '\"' before the end of the line");
  EXPECT_EQ(
      ErrorOf("stage \"\\q\" = 0"),
      "line 1, column 7: '\\\"\\\\q\\\"': this string has an escape that C does not know: Unknown escape sequence: "
      "\\q");
  EXPECT_EQ(ErrorOf("$"), "line 1, column 1: '$': no part of the text form begins so");
  EXPECT_EQ(ErrorOf("graph @"), "line 1, column 7: '@': expected a name after this sign");
}

TEST(Parse, NamesWhatIsWrongWithALine) {
  const auto error = [](absl::string_view line) { return ErrorOf(WithLines(line)); };
  EXPECT_EQ(error("%y = relu(%z) : f32[2,3]"), "line 2, column 11: '%z': no line above defines this value");
  EXPECT_EQ(error("%x = relu(%x) : f32[2,3]"), "line 2, column 1: '%x': this value is defined twice");
  EXPECT_EQ(error("%y, %y = h(%x) : f32[], f32[]"), "line 2, column 5: '%y': this value is defined twice");
  EXPECT_EQ(error("%y = relu(%x)"), "line 3, column 1: '}': expected ':'");
  EXPECT_EQ(error("%y = relu(%x) : f32[3,2]"), "line 2, column 6: 'relu': gives f32[2,3], but f32[3,2] is written");
  EXPECT_EQ(error("relu(%x)"), "line 2, column 1: 'relu': gives f32[2,3], but no result is written");
  EXPECT_THAT(error("%y = relu(%x, %x) : f32[2,3]"), HasSubstr("line 2, column 6: 'relu': relu: "));
  EXPECT_THAT(error("%y = relu(%x) {slope=0.1} : f32[2,3]"), HasSubstr("attribute slope"));
  EXPECT_EQ(error("sdg(%x)"),
            "line 2, column 1: 'sdg': the op table has no such op; a host op needs its result types written, ': ()' "
            "for none");
  EXPECT_EQ(error("%y = h(%x) {a=1, a=2} : f32[]"), "line 2, column 18: 'a': this attribute is given twice");
  EXPECT_EQ(error("%y = h(%x) {a=} : f32[]"),
            "line 2, column 15: '}': expected true, false, a number, a string or a list of integers");
  EXPECT_EQ(error("%y = h(%x) {a=99999999999999999999} : f32[]"),
            "line 2, column 15: '99999999999999999999': expected an integer between -2^63 and 2^63 - 1");
  EXPECT_EQ(error("%y = h(%x) {a=1e999} : f32[]"), "line 2, column 15: '1e999': expected a number that fits a double");
  EXPECT_EQ(error("%y = h(%x) : f32[1152921504606846977]"),
            "line 2, column 18: '1152921504606846977': a tensor has at most 2^60 elements");
  EXPECT_EQ(error("%y = h(%x) : f32[4294967296,4294967296,0]"),
            "line 2, column 29: '4294967296': a tensor has at most 2^60 elements");
  EXPECT_EQ(error("%w = param w : f32[2]"), "line 2, column 12: 'w': expected the parameter's name in quotes");
  EXPECT_EQ(error("%w = param \"w\" {frozen} : f32[2]"),
            "line 2, column 16: '{': unknown attribute frozen; choose of trainable");
  EXPECT_EQ(error("%c = constant x : f32[]"), "line 2, column 15: 'x': expected a number that fits a double");
  EXPECT_EQ(error("%y = relu(%x) : f32[2,3]  // layer1"), "line 3, column 1: '}': expected ','");
  EXPECT_EQ(error("%y = relu(%x) : f32[2,3]  // layer1, sideways"),
            "line 2, column 38: 'sideways': expected forward, backward or update");
  EXPECT_EQ(error("%y = relu(%x) : f32[2,3]  // stage 99999999999, forward"),
            "line 2, column 36: '99999999999': expected an integer between -2^31 and 2^31 - 1");
  EXPECT_EQ(error("%y = relu(%x) : f32[2,3]  // forward, buffer 0 y 1"), "line 2, column 48: 'y': expected 'x'");
  EXPECT_EQ(error("%y = relu(%x) : f32[2,3]  // forward, disk 0 x 1"),
            "line 2, column 39: 'disk': expected a placement: one of buffer, channel");
  EXPECT_EQ(error("barrier() : ()  // forward, none"),
            "line 2, column 29: 'none': this node has no result that could be placed");
}

// Products and sums of what is written never overflow.
TEST(Parse, RefusesAttributesBeyondAllTensors) {
  const auto error = [](absl::string_view line) { return ErrorOf(WithLines(line)); };
  EXPECT_THAT(error("%y = slice(%x) {begin=[9223372036854775807,0], size=[1,3]} : f32[1,3]"),
              HasSubstr("begin 9223372036854775807 and size 1 reach over the extent 2"));
  EXPECT_THAT(error("%y = slice(%x) {begin=[1,0], size=[9223372036854775807,3]} : f32[1,3]"),
              HasSubstr("begin 1 and size 9223372036854775807 reach over the extent 2"));
  EXPECT_THAT(error("%y = pad(%x) {after=[9223372036854775807,0], before=[9223372036854775807,0]} : f32[0,3]"),
              HasSubstr("to more than 2^60 elements"));
  EXPECT_THAT(error("%y = reshape(%x) {shape=[4294967296,4294967296,6]} : f32[6]"),
              HasSubstr("shape [4294967296, 4294967296, 6] has more than 2^60 elements"));
  EXPECT_THAT(error("%y = broadcast_to(%x) {shape=[9223372036854775807,2,3]} : f32[6]"),
              HasSubstr("has more than 2^60 elements"));
  EXPECT_THAT(error("%y = micro_batch_merge(%x) {count=9223372036854775807, reduce=\"concat\"} : f32[2,3]"),
              HasSubstr("9223372036854775807 times operand 0 f32[2,3] is more than 2^60 elements"));
}

// The offending text is shown as it can be read, whatever bytes it has.
TEST(Parse, ShortensAndEscapesTheText) {
  EXPECT_EQ(ErrorOf("\x01"), "line 1, column 1: '\\x01': no part of the text form begins so");
  EXPECT_EQ(ErrorOf(std::string(100, 'a')), absl::StrCat("line 1, column 1: '", std::string(40, 'a'),
                                                         "...': expected 'block', 'graph' or the end of the text"));
  EXPECT_EQ(ErrorOf(absl::string_view("\0", 1)), "line 1, column 1: '\\x00': no part of the text form begins so");
}

// Every op of the table goes through the text form once, with all attributes that its row names.
TEST(Parse, TakesEveryTypedOpOfTheTable) {
  int typed = 0;
  for (const OpDef& op : OpTable()) {
    if (!op.traits.typed) continue;
    ++typed;
    const std::string line = absl::StrCat("  %r = ", op.name, "() : f32[7]  // forward");
    EXPECT_THAT(Print(ParseOrDie(WithLines(line))), HasSubstr(line));
  }
  EXPECT_GE(typed, 1);
}

}  // namespace
}  // namespace pipeloom
