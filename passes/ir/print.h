#ifndef PASSES_IR_PRINT_H_
#define PASSES_IR_PRINT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "passes/ir/graph.h"
#include "passes/ir/module.h"

namespace pipeloom {

// The text form; Parse (parse.h) is its exact inverse for every module that Verify accepts. A module is
//
//   pipeline {micro_batches=4, schedule="1f1b", stages=2, threads=1}
//   stage "layer1" = 0
//
//   graph @step(%image: f32[8,784] {batch_axis=0}) -> (%h {reduce="concat"}) {
//     %w1 = param "layer1.weight" : f32[784,512]
//     %c = constant 0.25 : f32[]
//     %a = matmul(%image, %w1) : f32[8,512]  // layer1, stage 0, forward
//     %h = mul(%a, %c) : f32[8,512]  // layer1, stage 0, forward
//   } update sgd {lr=0.01}
//
// Blocks stand before the graphs, and nodes call them:
//
//   block @layer(%x: f32[8,64]) -> (%y) {
//     %w = param "weight" : f32[64,64]
//     %y = matmul(%x, %w) : f32[8,64]  // forward
//   }
//   ...
//     %h = call(%image, %w1) {block="layer"} : f32[8,64]  // net.layer1, forward
//
// A backward block says what part its calls are of: `block @layer.W part W(...)`.
//
// What follows `//` belongs to the node: its cell and its stage where it has them, its phase, its rate where that is
// not the phase's usual one (micro; step for update), then the placements of its results ("buffer 3 x 2 first_apart";
// "none" for a result without one beside one that has one). Inputs of a split graph (`graph @step chunk 0 B(...)`) may
// be `saved` or `boundary`. An output after the first of the step carries {index=1, ...}. A host op without results is
// written with `: ()`. Names that are no plain words stand in quotes: %"a name". Lines that begin with '#' are
// comments.
std::string Print(const Module& module);
std::string Print(const Graph& graph);
// The node's line, without indentation and line end.
std::string Print(const Node& node);

// "@step", or "@step chunk 0 F" for a split graph.
std::string GraphTitle(const Graph& graph);

// "%a", or %"a name".
std::string ValueName(const Value& value);

// Whether `text` can stand without quotes as a name: letters, digits, '_', '.', '+' and '-', and at least one of them.
bool IsPlainWord(absl::string_view text);

// Tables of the text form, read by the printer and by the parser.
inline constexpr absl::string_view kPhaseNames[] = {"forward", "backward", "update"};
inline constexpr absl::string_view kRateNames[] = {"micro", "step"};
inline constexpr absl::string_view kSpaceNames[] = {"buffer", "channel"};
constexpr Rate UsualRate(Phase phase) { return phase == Phase::kUpdate ? Rate::kStep : Rate::kMicro; }
// Words that mean something after `//`, so that a cell of that name stands in quotes.
bool IsReservedAfterNode(absl::string_view word);

}  // namespace pipeloom

#endif  // PASSES_IR_PRINT_H_
