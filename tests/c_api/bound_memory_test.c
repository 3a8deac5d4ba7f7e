/* Parameters in memory of the host: steps read and write them there, and binding anew holds from the next step on. */
#include "tests/c_api/check.h"
#include "tests/c_api/mlp.h"

static const char kLayer1[] = "net.layer1.weight";
static const char kLayer2[] = "net.layer2.weight";

static pipeloom_session* make_session(int stages, mlp_host* host) {
  pipeloom_session_options options;
  pipeloom_session_options_init(&options);
  options.host_ops = mlp_host_ops(host);
  pipeloom_session* session;
  OK(pipeloom_session_create(stages, &options, &session));
  return session;
}

static int load(pipeloom_session* session, pipeloom_module* module) {
  pipeloom_program* program;
  int loaded;
  OK(pipeloom_compile(module, NULL, &program));
  OK(pipeloom_session_load(session, program, &loaded));
  pipeloom_module_destroy(module);
  pipeloom_program_destroy(program);
  return loaded;
}

static void bind(pipeloom_session* session, mlp_weights* weights) {
  const pipeloom_tensor w1 = mlp_w1_tensor(weights->w1), w2 = mlp_w2_tensor(weights->w2);
  OK(pipeloom_session_bind_parameter(session, 0, kLayer1, &w1));
  OK(pipeloom_session_bind_parameter(session, 1, kLayer2, &w2));
}

static float step(pipeloom_session* session, int loaded, int number) {
  mlp_batch batch;
  mlp_fill_batch(number, &batch);
  return mlp_run(session, loaded, &batch);
}

/* What two steps from the initial weights give, in memory of the session. */
static void train_unbound(float* losses, mlp_weights* after_one, mlp_weights* after_two) {
  mlp_host host = {0, 0, 0};
  pipeloom_session* session = make_session(2, &host);
  const int loaded = load(session, mlp_with_own_backward(2));
  mlp_weights initial;
  mlp_fill_weights(&initial);
  const pipeloom_tensor w1 = mlp_w1_tensor(initial.w1), w2 = mlp_w2_tensor(initial.w2);
  OK(pipeloom_session_write_parameter(session, kLayer1, &w1));
  OK(pipeloom_session_write_parameter(session, kLayer2, &w2));
  mlp_weights* after[] = {after_one, after_two};
  for (int i = 0; i < 2; ++i) {
    losses[i] = step(session, loaded, i);
    const pipeloom_tensor read1 = mlp_w1_tensor(after[i]->w1), read2 = mlp_w2_tensor(after[i]->w2);
    OK(pipeloom_session_read_parameter(session, kLayer1, &read1));
    OK(pipeloom_session_read_parameter(session, kLayer2, &read2));
  }
  pipeloom_session_destroy(session);
}

static int same(const mlp_weights* a, const mlp_weights* b) { return memcmp(a, b, sizeof(*a)) == 0; }

int main(void) {
  float losses[2];
  mlp_weights after_one, after_two, initial;
  train_unbound(losses, &after_one, &after_two);
  mlp_fill_weights(&initial);

  mlp_host host = {0, 0, 0};
  pipeloom_session* session = make_session(2, &host);
  /* Aligned to 4 bytes and no more, and bound before any program uses it. */
  static char memory[3 * sizeof(mlp_weights) + 64];
  mlp_weights* first = (mlp_weights*)(void*)(memory + 64 - (uintptr_t)memory % 64 + 4);
  mlp_weights* second = first + 1;
  *first = initial;
  bind(session, first);
  const int loaded = load(session, mlp_with_own_backward(2));
  CHECK(same(first, &initial));

  CHECK(step(session, loaded, 0) == losses[0]);
  CHECK(same(first, &after_one));

  /* What the host writes is the value of the next step. */
  *first = initial;
  CHECK(step(session, loaded, 0) == losses[0]);
  CHECK(same(first, &after_one));

  /* Bound anew, in a program that is loaded: the former memory stays as it is. */
  *second = after_one;
  bind(session, second);
  CHECK(step(session, loaded, 1) == losses[1]);
  CHECK(same(second, &after_two));
  CHECK(same(first, &after_one));

  /* Another program of the session sees the same memory, and writes to it. */
  *second = initial;
  const int other = load(session, mlp_with_update_rule(2));
  CHECK(same(second, &initial));
  CHECK(step(session, other, 0) == losses[0]);
  CHECK(same(second, &after_one));

  /* Writing and reading a parameter go there, too. */
  const pipeloom_tensor w1 = mlp_w1_tensor(initial.w1);
  OK(pipeloom_session_write_parameter(session, kLayer1, &w1));
  CHECK(memcmp(second->w1, initial.w1, sizeof(initial.w1)) == 0);
  float read[MLP_W2];
  const pipeloom_tensor w2 = mlp_w2_tensor(read);
  OK(pipeloom_session_read_parameter(session, kLayer2, &w2));
  CHECK(memcmp(read, after_one.w2, sizeof(read)) == 0);

  /* Without data the session keeps the value, in its own memory. */
  *second = after_one;
  const pipeloom_tensor none1 = mlp_w1_tensor(NULL), none2 = mlp_w2_tensor(NULL);
  OK(pipeloom_session_bind_parameter(session, 0, kLayer1, &none1));
  OK(pipeloom_session_bind_parameter(session, 1, kLayer2, &none2));
  memset(second, 0xff, sizeof(*second));
  CHECK(step(session, loaded, 1) == losses[1]);
  const pipeloom_tensor read1 = mlp_w1_tensor(second->w1), read2 = mlp_w2_tensor(second->w2);
  OK(pipeloom_session_read_parameter(session, kLayer1, &read1));
  OK(pipeloom_session_read_parameter(session, kLayer2, &read2));
  CHECK(same(second, &after_two));

  const int64_t wrong[] = {MLP_HIDDEN, MLP_IN};
  pipeloom_tensor refused = mlp_w1_tensor(first->w1);
  refused.type.extents = wrong;
  REFUSED(pipeloom_session_bind_parameter(session, 0, kLayer1, &refused), PIPELOOM_INVALID_ARGUMENT,
          "parameter net.layer1.weight is f32[6,8]; the memory to bind it to is f32[8,6]");
  refused = mlp_w1_tensor(NULL);
  refused.data = (char*)first + 2;
  REFUSED(pipeloom_session_bind_parameter(session, 0, kLayer1, &refused), PIPELOOM_INVALID_ARGUMENT,
          "parameter net.layer1.weight: the data of a tensor of f32 begins at no multiple of 4 bytes");
  refused = mlp_w1_tensor(first->w1);
  REFUSED(pipeloom_session_bind_parameter(session, 2, kLayer1, &refused), PIPELOOM_INVALID_ARGUMENT,
          "parameter net.layer1.weight cannot be bound on rank 2, which the session of 2 ranks has not");
  pipeloom_session_destroy(session);
  return 0;
}
