#include "plugin/mindspore/effects.h"

#include <set>

#include "plugin/mindspore/import_ops.h"

namespace pipeloom::ms {

void CheckReadsAreCurrent(const host::CNodePtr& node) {
  host::AnfNodePtr order;
  std::set<const host::AnfNode*> read;
  for (size_t i = 1; i < node->size(); ++i) {
    const host::AnfNodePtr& input = node->input(i);
    if (IsEffectOrder(input)) order = input;
    const bool written = i == 1 && WritesParameter(OpName(node));
    if (input->isa<host::Parameter>() && !written) read.insert(input.get());
  }
  while (order != nullptr && !read.empty() && OpName(order) == "UpdateState") {
    const auto state = order->cast<host::CNodePtr>();
    for (size_t i = 2; i < state->size(); ++i) {
      const auto done = state->input(i)->cast<host::CNodePtr>();
      if (done == nullptr || !WritesParameter(OpName(done)) || read.count(done->input(1).get()) == 0) continue;
      throw Refused(Describe(node) + " reads parameter " + done->input(1)->cast<host::ParameterPtr>()->name() +
                    " after " + OpName(done) + " has written it in the same step; use the new value itself");
    }
    order = state->input(1);
  }
}

}  // namespace pipeloom::ms
