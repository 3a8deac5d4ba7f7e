#ifndef PASSES_INSERT_GRAD_REDUCERS_H_
#define PASSES_INSERT_GRAD_REDUCERS_H_

#include "passes/pass.h"

namespace pipeloom {

// Keeps the copies of a parameter that several stages use equal. Its owner, the first stage, has the sum over all uses
// (made in program order); every other stage gets that sum and does the same update:
//
//   chunk 0 F(...)   reads param "table"              chunk 0 R  %d.t.sum = add(%d.t.acc, %d.t.1.acc)
//   chunk 1 F(...)   reads param "table"         ->   chunk 0 U  sgd(%t, %d.t.sum)
//   chunk 0 U        sgd(%t, %d.t.sum)                chunk 1 U  sgd(%t, %d.t.sum boundary)
//
// It only names boundary values; insert_send_receive, which comes next, makes all channels.
class InsertGradReducers : public Pass {
 public:
  absl::string_view name() const override { return "insert_grad_reducers"; }
  absl::StatusOr<bool> Run(Module& module) const override;
  // A parameter that is written on one stage is written on every stage that reads it, once.
  absl::Status CheckAfter(const Module& module) const override;
};

}  // namespace pipeloom

#endif  // PASSES_INSERT_GRAD_REDUCERS_H_
