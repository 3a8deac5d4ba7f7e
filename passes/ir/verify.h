#ifndef PASSES_IR_VERIFY_H_
#define PASSES_IR_VERIFY_H_

#include "absl/status/status.h"
#include "passes/ir/module.h"

namespace pipeloom {

// What holds for every module, between all passes:
// * a graph owns the values that its nodes and outputs name, under unique names, and nodes stand after what they read;
// * known ops have the operands, attributes and result types of the op table; nodes write parameters only;
// * all uses of a parameter's name, over all graphs, agree on type and on whether it is trainable;
// * constants, batch axes, stages, placements and outputs are in range;
// * a call's block exists, and its operands and results have the types of the block's inputs, parameters and outputs;
//   a formal parameter is given a parameter that is as trainable;
// * a block calls no other, its nodes have no stage, run once a micro-batch and have the phase of its calls, and its
//   outputs are results, no views, each once;
// * a graph has both chunk and part or neither, and each saved or boundary input is an output, of the same type, of a
//   graph of the same chunk or of another chunk.
//
// InvalidArgument "graph @step: <line of the node> (cell 'layer1'): <rule, with the values>" otherwise.
absl::Status Verify(const Module& module);

}  // namespace pipeloom

#endif  // PASSES_IR_VERIFY_H_
