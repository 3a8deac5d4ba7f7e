#ifndef PASSES_WEIGHT_CHAIN_H_
#define PASSES_WEIGHT_CHAIN_H_

#include <vector>

#include "passes/ir/graph.h"

namespace pipeloom {

// The chain that ends in the parameter gradient made by `last`, up to the node that contracts the rows; `last` alone
// where nothing contracts.
std::vector<const Node*> WeightChain(const Node* last, const UseMap& uses);

}  // namespace pipeloom

#endif  // PASSES_WEIGHT_CHAIN_H_
