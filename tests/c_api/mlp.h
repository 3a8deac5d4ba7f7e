/* Two dense layers with a relu between them, as the adapter of another framework would build them, and the same in
 * plain loops. */
#ifndef TESTS_C_API_MLP_H_
#define TESTS_C_API_MLP_H_

#include <stdint.h>

#include "plugin/c_api/pipeloom.h"

enum { MLP_MICRO_BATCHES = 4, MLP_ROWS = 3, MLP_BATCH = MLP_MICRO_BATCHES * MLP_ROWS };
enum { MLP_IN = 6, MLP_HIDDEN = 8, MLP_CLASSES = 4 };
enum { MLP_W1 = MLP_IN * MLP_HIDDEN, MLP_W2 = MLP_HIDDEN * MLP_CLASSES };

typedef struct mlp_batch {
  float x[MLP_BATCH * MLP_IN];
  int32_t labels[MLP_BATCH];
} mlp_batch;

typedef struct mlp_weights {
  float w1[MLP_W1];
  float w2[MLP_W2];
} mlp_weights;

void mlp_fill_batch(int step, mlp_batch* batch);
void mlp_fill_weights(mlp_weights* weights);

/* Layer 1 on stage 0, layer 2 and the loss on stage `stages` - 1. The forward part with its loss and an update rule. */
pipeloom_module* mlp_with_update_rule(int stages);
/* Forward, backward and update as the host has them, with the relu and its gradient as host ops. */
pipeloom_module* mlp_with_own_backward(int stages);

pipeloom_type mlp_type(int dtype, int rank, const int64_t* extents);
pipeloom_tensor mlp_w1_tensor(float* data);
pipeloom_tensor mlp_w2_tensor(float* data);

/* Counts of calls; several threads may be in there. */
typedef struct mlp_host {
  int made;
  int ran;
  int destroyed;
} mlp_host;
/* `host` outlives the session. */
pipeloom_host_ops mlp_host_ops(mlp_host* host);

/* One step of `loaded` on `batch`: its loss. */
float mlp_run(pipeloom_session* session, int loaded, mlp_batch* batch);

/* The same in double: one step of gradient descent on the whole batch. Returns the loss before it. */
typedef struct mlp_reference {
  double w1[MLP_W1];
  double w2[MLP_W2];
} mlp_reference;
void mlp_reference_begin(const mlp_weights* weights, mlp_reference* reference);
double mlp_reference_step(mlp_reference* reference, const mlp_batch* batch);

#endif /* TESTS_C_API_MLP_H_ */
