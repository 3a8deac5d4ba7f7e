#ifndef PLUGIN_MINDSPORE_EFFECTS_H_
#define PLUGIN_MINDSPORE_EFFECTS_H_

#include "plugin/mindspore/anf.h"

namespace pipeloom::ms {

// A step of Pipeloom reads all parameters as they were before it. Refused where the order of effects has the node read
// one after another node has written it.
void CheckReadsAreCurrent(const host::CNodePtr& node);

}  // namespace pipeloom::ms

#endif  // PLUGIN_MINDSPORE_EFFECTS_H_
