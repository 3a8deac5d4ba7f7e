#ifndef PLUGIN_MINDSPORE_NODE_KINDS_H_
#define PLUGIN_MINDSPORE_NODE_KINDS_H_

#include <unordered_map>
#include <vector>

#include "plugin/mindspore/anf.h"

namespace pipeloom::ms {

// Names of the primitives of ours that mark a graph; see the Python package, which puts them in.
inline constexpr char kSlice[] = "PipeloomSlice";
inline constexpr char kSliceGrad[] = "PipeloomSliceGrad";
inline constexpr char kMerge[] = "PipeloomMerge";
inline constexpr char kMergeGrad[] = "PipeloomMergeGrad";
inline constexpr char kBorder[] = "PipeloomBorder";
inline constexpr char kBorderGrad[] = "PipeloomBorderGrad";
inline constexpr char kReduce[] = "PipeloomReduce";

// When a node runs, as MindSpore's graph tells it: the forward and the backward of a micro-batch come from slices of
// the batch and from the gradient of what merges them, and autodiff has left its marks on them; what uses their results
// without such a mark (reducers, clipping, the optimizer) runs once a step.
enum class Kind {
  kFree,  // depends on parameters and constants alone: runs with whatever reads it
  kForward,
  kBackward,
  kStep,
};

// Of all nodes of a graph in topological order. Sums of gradients that only the step reads (of several uses of a
// parameter, or with what is added once a step) are kStep: each use has an accumulator of its own, and what is free is
// added once. Refused where a node is neither clearly of the micro-batch nor of the step.
std::unordered_map<const host::AnfNode*, Kind> FindKinds(const std::vector<host::AnfNodePtr>& order);

}  // namespace pipeloom::ms

#endif  // PLUGIN_MINDSPORE_NODE_KINDS_H_
