#include "passes/ir/verify.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/ir/parse.h"
#include "tests/ir/texts.h"

namespace pipeloom {
namespace {

using ::testing::HasSubstr;

const TensorType kVector{DType::kFloat32, {2}};

std::string ErrorOf(const Module& module) {
  const absl::Status status = Verify(module);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

std::string ErrorOf(absl::string_view text) {
  const absl::StatusOr<Module> module = Parse(text);
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? ErrorOf(*module) : "";
}

// A graph @g with the input %x, for what the text form cannot even say.
struct OneGraph {
  OneGraph() {
    module.graphs.push_back(std::make_unique<Graph>("g"));
    graph = module.graphs[0].get();
    x = graph->AddInput("x", kVector, {});
  }
  Module module;
  Graph* graph;
  Value* x;
};

class Sound : public ::testing::TestWithParam<const char*> {};

TEST_P(Sound, ModuleIsAccepted) {
  const absl::StatusOr<Module> module = Parse(GetParam());
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(Verify(*module), absl::OkStatus());
}

INSTANTIATE_TEST_SUITE_P(All, Sound, ::testing::Values(kStepText, kSplitText, kOddText, kBlockText));

TEST(Verify, CountsAreOneOrMore) {
  EXPECT_EQ(ErrorOf("pipeline {stages=0}"), "stages, micro_batches and threads are 1 or more, not 0, 1 and 1");
  EXPECT_EQ(ErrorOf("pipeline {micro_batches=0}"), "stages, micro_batches and threads are 1 or more, not 1, 0 and 1");
  EXPECT_EQ(ErrorOf("pipeline {threads=-1}"), "stages, micro_batches and threads are 1 or more, not 1, 1 and -1");
}

TEST(Verify, GraphsHaveNamesOfTheirOwn) {
  EXPECT_EQ(ErrorOf("graph @g() -> () {} graph @g() -> () {}"), "two graphs are named @g");
  EXPECT_EQ(ErrorOf("graph @g chunk 0 F() -> () {} graph @g chunk 0 B() -> () {} graph @g chunk 0 F() -> () {}"),
            "two graphs are named @g chunk 0 F");
}

TEST(Verify, ASplitGraphHasChunkAndPart) {
  OneGraph one;
  one.graph->chunk = ChunkId(0);
  EXPECT_THAT(ErrorOf(one.module), HasSubstr("has both a chunk and a part"));
}

// A block with one input and one parameter, and a graph with one line.
std::string WithBlock(absl::string_view line, absl::string_view node = "%y = mul(%x, %w) : f32[2]  // forward") {
  return absl::StrCat("block @layer(%x: f32[2]) -> (%y) {\n  %w = param \"w\" : f32[2]\n  ", node,
                      "\n}\ngraph @g(%a: f32[2], %i: f32[3]) -> () {\n  %p = param \"p\" : f32[2]\n  ",
                      "%q = param \"q\" {trainable=false} : f32[2]\n  ", line, "\n}");
}

TEST(Verify, ACallFitsItsBlock) {
  const absl::StatusOr<Module> module =
      Parse(WithBlock("%r = call(%a, %p) {block=\"layer\"} : f32[2]  // net.0, forward"));
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(Verify(*module), absl::OkStatus());
  const auto error = [](absl::string_view line) { return ErrorOf(WithBlock(line)); };
  EXPECT_THAT(error("%r = call(%a, %p) {block=\"lair\"} : f32[2]  // forward"), HasSubstr("there is no block 'lair'"));
  EXPECT_THAT(error("%r = call(%a) {block=\"layer\"} : f32[2]  // forward"),
              HasSubstr("takes 1 inputs and 1 parameters and gives 1 results; the call has 1 operands and 1 results"));
  EXPECT_THAT(error("%r = call(%i, %p) {block=\"layer\"} : f32[2]  // forward"),
              HasSubstr("the block wants %x: f32[2], not %i: f32[3]"));
  EXPECT_THAT(error("%r = call(%a, %a) {block=\"layer\"} : f32[2]  // forward"),
              HasSubstr("the block wants %w: f32[2], a parameter, not %a: f32[2]"));
  EXPECT_THAT(error("%r = call(%a, %q) {block=\"layer\"} : f32[2]  // forward"),
              HasSubstr("not %q: f32[2], a parameter that is not trained"));
  EXPECT_THAT(error("%r = call(%a, %p) {block=\"layer\"} : f32[3]  // forward"),
              HasSubstr("%r is f32[3], but block layer gives f32[2]"));
  EXPECT_THAT(error("%r = call(%a, %p) {block=\"layer\"} : f32[2]  // backward"),
              HasSubstr("the nodes of block layer have another phase or rate"));
  EXPECT_THAT(error("%r = call(%a, %p) {block=7} : f32[2]  // forward"), HasSubstr("attribute block=7 is of type int"));
}

TEST(Verify, ABlockStandsForItself) {
  EXPECT_THAT(ErrorOf(WithBlock("", "%y = call(%x, %w) {block=\"layer\"} : f32[2]  // forward")),
              HasSubstr("a block calls no other block"));
  EXPECT_THAT(ErrorOf(WithBlock("", "%y = mul(%x, %w) : f32[2]  // stage 0, forward")),
              HasSubstr("its calls have a stage, a block's nodes have none"));
  EXPECT_THAT(ErrorOf(WithBlock("", "%y = reshape(%x) {shape=[2]} : f32[2]  // forward")),
              HasSubstr("output %y of a block is a node's result, no view"));
  EXPECT_THAT(ErrorOf("block @b(%x: f32[2] {batch_axis=0}) -> () {}"), HasSubstr("%x is no plain input"));
  EXPECT_THAT(ErrorOf("block @b() -> () {} block @b() -> () {}"), HasSubstr("two blocks are named @b"));
}

TEST(Verify, OperandsAreDefinedAbove) {
  OneGraph one;
  ASSERT_TRUE(one.graph->AddNode("relu", {one.x}, {}, {"cell1", {}}, "a").ok());
  ASSERT_TRUE(one.graph->AddNode("relu", {one.graph->Find("a")}, {}, {"cell2", {}}, "b").ok());
  EXPECT_EQ(Verify(one.module), absl::OkStatus());
  std::swap(one.graph->mutable_nodes()[0], one.graph->mutable_nodes()[1]);
  EXPECT_EQ(ErrorOf(one.module),
            "graph @g: %b = relu(%a) : f32[2]  // cell2, forward (cell 'cell2'): %a is read above its definition");
}

TEST(Verify, OperandsAreOfTheSameGraph) {
  OneGraph one;
  OneGraph other;
  one.graph->AddTypedNode("relu", {other.x}, {}, {"net", {}}, {kVector});
  EXPECT_EQ(ErrorOf(one.module), "graph @g: relu (cell 'net'): operand 0 is no value of this graph");
  one.graph->mutable_nodes()[0]->operands[0] = nullptr;
  EXPECT_EQ(ErrorOf(one.module), "graph @g: relu (cell 'net'): operand 0 is no value of this graph");
}

TEST(Verify, OutputsAreOfTheGraph) {
  OneGraph one;
  OneGraph other;
  one.graph->outputs = {{other.x, ""}};
  EXPECT_EQ(ErrorOf(one.module), "graph @g: an output is no value of this graph");
}

TEST(Verify, OutputsNameAReductionAndAnIndex) {
  EXPECT_EQ(ErrorOf("graph @g(%x: f32[]) -> (%x {reduce=\"max\"}) {}"),
            "graph @g: output %x has reduce=\"max\"; choose one of sum, mean, concat, once, gradient");
  EXPECT_EQ(ErrorOf("graph @g(%x: f32[]) -> (%x {reduce=\"gradient\"}) {}"),
            "graph @g: output %x has reduce=\"gradient\"; only a trainable parameter of floats has a gradient to give "
            "out");
  EXPECT_EQ(ErrorOf("graph @g(%x: f32[]) -> (%w {reduce=\"gradient\"}, %x {reduce=\"sum\"}) {\n"
                    "  %w = param \"w\" : f32[]\n}"),
            "graph @g: output %x stands after a gradient; give gradients out last");
  EXPECT_EQ(ErrorOf("graph @g(%x: f32[]) -> (%x {index=-1}) {}"), "graph @g: output %x has index -1; give 0 or more");
}

TEST(Verify, NamesAreUnique) {
  OneGraph one;
  one.graph->AddInput("y", kVector, {})->name = "x";
  EXPECT_EQ(ErrorOf(one.module), "graph @g: %x: names of values are unique in a graph");
}

TEST(Verify, ResultsNameTheirProducer) {
  OneGraph one;
  ASSERT_TRUE(one.graph->AddNode("relu", {one.x}, {}, {}, "a").ok());
  one.graph->Find("a")->producer = nullptr;
  EXPECT_THAT(ErrorOf(one.module), HasSubstr("%a does not name this node its producer"));
}

TEST(Verify, ResultTypesAreThoseOfTheOpTable) {
  OneGraph one;
  one.graph->AddTypedNode("relu", {one.x}, {}, {"net.relu1", StageId(0)}, {{DType::kFloat32, {3}}}, "y");
  EXPECT_EQ(ErrorOf(one.module),
            "graph @g: %y = relu(%x) : f32[3]  // net.relu1, stage 0, forward (cell 'net.relu1'): result types are "
            "f32[3], but the op gives f32[2]");
  OneGraph none;
  none.graph->AddTypedNode("relu", {none.x}, {}, {}, {});
  EXPECT_THAT(ErrorOf(none.module), HasSubstr("result types are none, but the op gives f32[2]"));
}

TEST(Verify, OperandsAndAttributesAreThoseOfTheOpTable) {
  OneGraph two;
  two.graph->AddTypedNode("relu", {two.x, two.x}, {}, {}, {kVector});
  EXPECT_THAT(ErrorOf(two.module), HasSubstr("relu: it takes 1 operand(s), not the 2"));
  OneGraph unknown;
  unknown.graph->AddTypedNode("relu", {unknown.x}, {{"slope", 0.5}}, {}, {kVector});
  EXPECT_THAT(ErrorOf(unknown.module), HasSubstr("attribute slope is unknown"));
  OneGraph typed;
  typed.graph->AddTypedNode("reduce_sum", {typed.x}, {{"keep_dims", std::string("yes")}}, {}, {kVector});
  EXPECT_THAT(ErrorOf(typed.module), HasSubstr("attribute keep_dims=\"yes\" is of type string"));
}

// Their result types are free, the rest is not.
TEST(Verify, OpsWithWrittenTypesAreChecked) {
  EXPECT_EQ(Verify(*Parse("graph @g() -> () { %r = receive() {channel=0, from=0} : i32[7] }")), absl::OkStatus());
  EXPECT_THAT(ErrorOf("graph @g() -> () { %r = receive() {channel=0} : i32[7] }"), HasSubstr("attribute from"));
  EXPECT_THAT(ErrorOf("graph @g() -> () { %r = receive() {channel=\"a\", from=0} : i32[7] }"),
              HasSubstr("attribute channel"));
}

TEST(Verify, HostOpsHaveAttributesThatPrint) {
  OneGraph one;
  one.graph->AddTypedNode("host", {one.x}, {{"a b", true}}, {}, {kVector});
  EXPECT_THAT(ErrorOf(one.module), HasSubstr("attribute 'a b' is no plain word"));
}

TEST(Verify, NodesWriteParametersOnly) {
  EXPECT_EQ(
      ErrorOf("graph @g(%w: f32[2], %g: f32[2]) -> () { sgd(%w, %g) {lr=0.1}  // net, update\n}"),
      "graph @g: sgd(%w, %g) {lr=0.1}  // net, update (cell 'net'): operand 0, %w, is written and is no parameter");
  EXPECT_THAT(ErrorOf("graph @g(%g: f32[2]) -> () { %w = param \"w\" : f32[2] %a = constant 0.0 : f32[2]\n"
                      "sgd(%w, %g, %a) {lr=0.1, momentum=0.9}  // update\n}"),
              HasSubstr("operand 2, %a, is written and is no parameter"));
}

TEST(Verify, StagesAreThoseOfThePipeline) {
  const auto text = [](int stage) {
    return absl::StrCat("pipeline {stages=2}\ngraph @g(%x: f32[2]) -> () { %y = relu(%x) : f32[2]  // net, stage ",
                        stage, ", forward\n}");
  };
  EXPECT_EQ(Verify(*Parse(text(1))), absl::OkStatus());
  EXPECT_THAT(ErrorOf(text(2)), HasSubstr("(cell 'net'): stage 2 is not one of the 2 stages, which count from 0"));
  EXPECT_THAT(ErrorOf(text(-1)), HasSubstr("stage -1 is not one of the 2 stages"));
}

TEST(Verify, ThreadsAreNoMoreThanCoresCanBe) {
  EXPECT_EQ(Verify(*Parse("pipeline {threads=1024}\ngraph @g() -> () {}")), absl::OkStatus());
  EXPECT_EQ(ErrorOf("pipeline {threads=1000000}\ngraph @g() -> () {}"), "1000000 threads a rank; give at most 1024");
}

TEST(Verify, ConstantsHaveTheirElements) {
  EXPECT_EQ(ErrorOf("graph @g() -> () { %c = constant [1.0, 2.0] : f32[3] }"),
            "graph @g: %c: a constant of type f32[3] has 1 or 3 elements, not 2");
  EXPECT_EQ(ErrorOf("graph @g() -> () { %c = constant [] : f32[] }"),
            "graph @g: %c: a constant of type f32[] has 1 or 1 elements, not 0");
  EXPECT_EQ(ErrorOf("graph @g() -> () { %c = constant 0.5 : i32[] }"),
            "graph @g: %c: 0.5 is no i32 that a constant can have");
  EXPECT_EQ(ErrorOf("graph @g() -> () { %c = constant [1, nan] : i32[2] }"),
            "graph @g: %c: nan is no i32 that a constant can have");
  EXPECT_THAT(ErrorOf("graph @g() -> () { %c = constant 2147483648 : i32[] }"), HasSubstr("is no i32"));
}

TEST(Verify, TheBatchAxisIsAnAxis) {
  EXPECT_EQ(ErrorOf("graph @g(%x: f32[2,3] {batch_axis=2}) -> () {}"),
            "graph @g: %x: batch axis 2 is no axis of f32[2,3]");
  EXPECT_EQ(ErrorOf("graph @g(%x: f32[] {batch_axis=0}) -> () {}"), "graph @g: %x: batch axis 0 is no axis of f32[]");
  EXPECT_EQ(ErrorOf("graph @g(%x: f32[2] {batch_axis=-1}) -> () {}"),
            "graph @g: %x: batch axis -1 is no axis of f32[2]");
}

TEST(Verify, TypesAndPlacementsAreInRange) {
  OneGraph type;
  type.x->type.shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THAT(ErrorOf(type.module), HasSubstr("%x: extents of f32[1099511627776,1099511627776] are 0 or more"));
  OneGraph placement;
  placement.x->placement = Placement{Placement::Space::kBuffer, 0, 0};
  EXPECT_EQ(ErrorOf(placement.module),
            "graph @g: %x: a placement has an index of 0 or more and at least 1 slot, not index 0 and 0 slots");
  placement.x->placement = Placement{Placement::Space::kBuffer, -1, 1};
  EXPECT_THAT(ErrorOf(placement.module), HasSubstr("not index -1 and 1 slots"));
}

TEST(Verify, AParameterIsOneInAllGraphs) {
  EXPECT_EQ(
      ErrorOf("graph @g() -> () { %w = param \"net.w\" : f32[2] } graph @h() -> () { %v = param \"net.w\" : f32[3] "
              "}"),
      "parameter net.w is f32[2] in graph @g and f32[3] in graph @h; one name is one parameter");
  EXPECT_EQ(ErrorOf("graph @g() -> () { %w = param \"w\" : f32[2] %v = param \"w\" {trainable=false} : f32[2] }"),
            "graph @g has parameter w twice; use one value of it everywhere");
}

// Graphs F and B of chunk 0 and F of chunk 1; B of chunk 0 reads %y as `input`.
std::string Joined(absl::string_view input) {
  return absl::StrCat("graph @s chunk 0 F(%x: f32[2]) -> (%y) { %y = relu(%x) : f32[2]  // forward\n}\n",
                      "graph @s chunk 1 F(%x: f32[2]) -> (%z) { %z = relu(%x) : f32[2]  // forward\n}\n",
                      "graph @s chunk 0 B(", input, ") -> () {}");
}

TEST(Verify, SavedAndBoundaryInputsAreOutputsElsewhere) {
  EXPECT_EQ(Verify(*Parse(Joined("%y: f32[2] saved"))), absl::OkStatus());
  EXPECT_EQ(Verify(*Parse(Joined("%z: f32[2] boundary"))), absl::OkStatus());
  EXPECT_EQ(ErrorOf(Joined("%y: f32[2] boundary")), "graph @s chunk 0 B: %y: no output of another chunk has this name");
  EXPECT_EQ(ErrorOf(Joined("%z: f32[2] saved")),
            "graph @s chunk 0 B: %z: no output of an earlier part of the same chunk has this name");
  EXPECT_EQ(ErrorOf(Joined("%y: i32[2] saved")),
            "graph @s chunk 0 B: %y: its type is i32[2], but the output of an earlier part of the same chunk of this "
            "name is f32[2]");
  EXPECT_EQ(ErrorOf("graph @s chunk 0 F(%a: f32[2] saved) -> (%b) { %b = relu(%a) : f32[2]  // forward\n}\n"
                    "graph @s chunk 0 B(%b: f32[2] saved) -> (%a) { %a = relu(%b) : f32[2]  // backward\n}"),
            "graph @s chunk 0 F: %a: no output of an earlier part of the same chunk has this name");
  EXPECT_EQ(ErrorOf("graph @s chunk 0 F(%x: f32[2]) -> (%x) {}"),
            "graph @s chunk 0 F: output %x of a split graph is made by none of its nodes");
  EXPECT_EQ(ErrorOf("graph @g(%x: f32[2] saved) -> () {}"),
            "graph @g: %x: saved and boundary inputs stand in split graphs only");
}

TEST(Verify, TheUpdateRuleIsAnOptimizer) {
  const auto text = [](absl::string_view rule) { return absl::StrCat("graph @g() -> () {} update ", rule); };
  for (absl::string_view rule :
       {"sgd {lr=0.1}", "sgd {lr=0.1, momentum=0.9, nesterov}", "adam {lr=0.1}", "adamw {lr=0.1}"}) {
    EXPECT_EQ(Verify(*Parse(text(rule))), absl::OkStatus()) << rule;
  }
  EXPECT_EQ(ErrorOf(text("relu")), "graph @g: update relu is no optimizer of the op table");
  EXPECT_EQ(ErrorOf(text("sdg {lr=0.1}")), "graph @g: update sdg is no optimizer of the op table");
  EXPECT_EQ(ErrorOf(text("assign")), "graph @g: update assign is no optimizer of the op table");
  EXPECT_THAT(ErrorOf(text("sgd")), HasSubstr("attribute lr (double) is missing"));
  EXPECT_THAT(ErrorOf(text("sgd {lr=\"x\"}")), HasSubstr("attribute lr=\"x\" is of type string"));
  EXPECT_THAT(ErrorOf(text("sgd {lr=0.1, momentum=true}")), HasSubstr("attribute momentum=true is of type bool"));
}

}  // namespace
}  // namespace pipeloom
