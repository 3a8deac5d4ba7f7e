/* Another framework's way to train: its graphs over two stages in threads, against plain loops in double; with an
 * update rule of ours, and with a backward part, updates and host ops of its own. */
#include <math.h>

#include "tests/c_api/check.h"
#include "tests/c_api/mlp.h"

enum { STEPS = 6 };

static void expect_near(const char* what, double given, double wanted) {
  if (!(fabs(given - wanted) <= 1e-5 * fmax(1.0, fabs(wanted)))) FAIL("%s is %.9g, not %.9g", what, given, wanted);
}

static void train(pipeloom_module* module, int stages, mlp_host* host, float* losses, mlp_weights* trained) {
  pipeloom_program* program;
  OK(pipeloom_compile(module, NULL, &program));
  pipeloom_module_destroy(module);

  pipeloom_session_options options;
  pipeloom_session_options_init(&options);
  if (host != NULL) options.host_ops = mlp_host_ops(host);
  pipeloom_session* session;
  OK(pipeloom_session_create(stages, &options, &session));
  int loaded;
  OK(pipeloom_session_load(session, program, &loaded));
  pipeloom_program_destroy(program);

  mlp_fill_weights(trained);
  const pipeloom_tensor w1 = mlp_w1_tensor(trained->w1), w2 = mlp_w2_tensor(trained->w2);
  OK(pipeloom_session_write_parameter(session, "net.layer1.weight", &w1));
  OK(pipeloom_session_write_parameter(session, "net.layer2.weight", &w2));
  for (int step = 0; step < STEPS; ++step) {
    mlp_batch batch;
    mlp_fill_batch(step, &batch);
    losses[step] = mlp_run(session, loaded, &batch);
  }
  OK(pipeloom_session_read_parameter(session, "net.layer1.weight", &w1));
  OK(pipeloom_session_read_parameter(session, "net.layer2.weight", &w2));
  pipeloom_session_destroy(session);
}

static void expect_reference(const float* losses, const mlp_weights* trained) {
  mlp_weights initial;
  mlp_reference reference;
  mlp_fill_weights(&initial);
  mlp_reference_begin(&initial, &reference);
  for (int step = 0; step < STEPS; ++step) {
    mlp_batch batch;
    mlp_fill_batch(step, &batch);
    expect_near("the loss", losses[step], mlp_reference_step(&reference, &batch));
  }
  for (int i = 0; i < MLP_W1; ++i) expect_near("a weight of layer 1", trained->w1[i], reference.w1[i]);
  for (int i = 0; i < MLP_W2; ++i) expect_near("a weight of layer 2", trained->w2[i], reference.w2[i]);
  /* Weights that never moved would be near the reference, too, if the rate were small. */
  CHECK(fabs(reference.w1[0] - initial.w1[0]) > 1e-3 && fabs(reference.w2[0] - initial.w2[0]) > 1e-3);
}

static void expect_same(const float* losses, const mlp_weights* trained, const float* others,
                        const mlp_weights* other) {
  CHECK(memcmp(losses, others, STEPS * sizeof(*losses)) == 0);
  CHECK(memcmp(trained, other, sizeof(*trained)) == 0);
}

int main(void) {
  CHECK(pipeloom_api_version() == PIPELOOM_API_VERSION);
  float rule_losses[STEPS], own_losses[STEPS], one_losses[STEPS];
  mlp_weights rule, own, one;
  train(mlp_with_update_rule(2), 2, NULL, rule_losses, &rule);
  expect_reference(rule_losses, &rule);

  mlp_host host = {0, 0, 0};
  train(mlp_with_own_backward(2), 2, &host, own_losses, &own);
  expect_reference(own_losses, &own);
  expect_same(own_losses, &own, rule_losses, &rule);
  /* One kernel for each of the two ops, both on stage 0; each once a micro-batch. */
  CHECK(host.made == 2 && host.destroyed == 2);
  CHECK(host.ran == 2 * STEPS * MLP_MICRO_BATCHES);

  train(mlp_with_own_backward(1), 1, &host, one_losses, &one);
  expect_same(one_losses, &one, own_losses, &own);
  return 0;
}
