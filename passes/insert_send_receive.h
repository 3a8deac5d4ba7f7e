#ifndef PASSES_INSERT_SEND_RECEIVE_H_
#define PASSES_INSERT_SEND_RECEIVE_H_

#include "passes/pass.h"

namespace pipeloom {

// Turns boundary values into channels, one for each value and reading chunk, over any distance:
//
//   chunk 0 F(...) -> (%h)                     chunk 0 F  %h = relu(%a);  send(%h) {channel=0, to=1}
//   chunk 1 F(%h boundary) -> ()          ->   chunk 1 F  %h = receive() {channel=0, from=0};  -> (%h)
//   chunk 1 W(%h boundary)                     chunk 1 W(%h saved)
//
// What F makes is received in F, what B makes in B; the other parts of the reading chunk get it saved. Values of rate
// step travel in R: accumulated gradients first (sends, then receives, towards lower chunks, since a parameter's owner
// is the first stage that uses it), then, after the sums, what R makes (towards higher chunks). All traffic of one kind
// goes one way, so no order of blocking sends can deadlock.
class InsertSendReceive : public Pass {
 public:
  absl::string_view name() const override { return "insert_send_receive"; }
  absl::StatusOr<bool> Run(Module& module) const override;
  // No boundary value is left; every channel has one send and one receive of the same type.
  absl::Status CheckAfter(const Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_INSERT_SEND_RECEIVE_H_
