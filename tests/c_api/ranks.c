/* One rank of a world, or all of them in threads where no launcher started ranks: `ranks MODE [TRANSPORT]` trains with
 * the parameters in its own memory and prints losses and weights. What goes wrong in MODE does so on one rank. */
#include "tests/c_api/check.h"
#include "tests/c_api/mlp.h"

enum { STEPS = 3, STAGES = 2 };

typedef struct rank_state {
  const char* mode;
  pipeloom_world* world;
  int rank, has_processes;
  pipeloom_session* session;
  mlp_weights weights;
  mlp_host host;
} rank_state;

static int is_mode(const rank_state* state, const char* mode) { return strcmp(state->mode, mode) == 0; }

/* The end of a rank that cannot go on; `error` is what this host has to say, or null for the library's. */
static int leave(rank_state* state, const char* error) {
  char text[1024];
  snprintf(text, sizeof(text), "%s", error == NULL ? pipeloom_last_error() : error);
  fprintf(stderr, "ranks: rank %d: %s\n", state->rank, text);
  if (error != NULL && state->session != NULL) OK(pipeloom_session_fail(state->session, PIPELOOM_ABORTED, error));
  pipeloom_session_destroy(state->session);
  OK(pipeloom_world_end(state->world, text));
  return 1;
}

static int failing_run(void* kernel, const void* const* inputs, void* const* outputs) {
  (void)kernel;
  (void)inputs;
  (void)outputs;
  pipeloom_set_error("the device is on fire");
  return PIPELOOM_UNAVAILABLE;
}

static int make_session(rank_state* state) {
  pipeloom_session_options options;
  pipeloom_session_options_init(&options);
  options.deadline_ms = 20000;
  options.host_ops = mlp_host_ops(&state->host);
  if (is_mode(state, "callback_fails")) options.host_ops.run = failing_run;
  const char* const flags[] = {"seed", is_mode(state, "other_flags") && state->rank == 1 ? "7" : "1"};
  options.configuration = flags;
  options.num_configuration = 2;
  if (state->has_processes) return pipeloom_session_create_for_rank(state->world, &options, &state->session);
  return pipeloom_session_create(STAGES, &options, &state->session);
}

/* Each rank binds what it uses; in threads this process does so for all. */
static void bind(rank_state* state, const pipeloom_program* program) {
  for (int rank = 0; rank < STAGES; ++rank) {
    if (state->has_processes && rank != state->rank) continue;
    const pipeloom_parameter* parameters;
    size_t count;
    OK(pipeloom_program_parameters(program, rank, &parameters, &count));
    CHECK(count == 1);
    const int first = strcmp(parameters[0].name, "net.layer1.weight") == 0;
    pipeloom_tensor memory;
    memory.type = parameters[0].type;
    memory.data = first ? state->weights.w1 : state->weights.w2;
    OK(pipeloom_session_bind_parameter(state->session, rank, parameters[0].name, &memory));
  }
}

static void print_weights(rank_state* state) {
  mlp_weights read;
  const pipeloom_tensor w1 = mlp_w1_tensor(read.w1), w2 = mlp_w2_tensor(read.w2);
  OK(pipeloom_session_read_parameter(state->session, "net.layer1.weight", &w1));
  OK(pipeloom_session_read_parameter(state->session, "net.layer2.weight", &w2));
  for (int i = 0; i < MLP_W1; ++i) printf("%a\n", read.w1[i]);
  for (int i = 0; i < MLP_W2; ++i) printf("%a\n", read.w2[i]);
  if (!state->has_processes || state->rank == 0) CHECK(memcmp(read.w1, state->weights.w1, sizeof(read.w1)) == 0);
  if (!state->has_processes || state->rank == 1) CHECK(memcmp(read.w2, state->weights.w2, sizeof(read.w2)) == 0);
}

static void expect_interface(const rank_state* state, int loaded) {
  int rank, ranks;
  OK(pipeloom_session_rank(state->session, &rank));
  OK(pipeloom_session_ranks(state->session, &ranks));
  CHECK(rank == state->rank && ranks == STAGES);
  const pipeloom_type* types;
  size_t count;
  OK(pipeloom_session_outputs(state->session, loaded, &types, &count));
  CHECK(count == 1 && types[0].dtype == PIPELOOM_F32 && types[0].rank == 0);
}

static int train(rank_state* state, int loaded) {
  expect_interface(state, loaded);
  for (int step = 0; step < STEPS; ++step) {
    if (step == 1 && is_mode(state, "host_fails") && state->rank == 1) return leave(state, "ValueError in line 7");
    mlp_batch batch;
    mlp_fill_batch(step, &batch);
    const int64_t x[] = {MLP_BATCH, MLP_IN}, labels[] = {MLP_BATCH};
    float loss;
    pipeloom_tensor inputs[2], output;
    inputs[0].type = mlp_type(PIPELOOM_F32, 2, x);
    inputs[0].data = batch.x;
    inputs[1].type = mlp_type(PIPELOOM_I32, 1, labels);
    inputs[1].data = batch.labels;
    output.type = mlp_type(PIPELOOM_F32, 0, NULL);
    output.data = &loss;
    if (pipeloom_session_run(state->session, loaded, inputs, 2, &output, 1) != PIPELOOM_OK) return leave(state, NULL);
    printf("loss %a\n", loss);
  }
  print_weights(state);
  pipeloom_session_destroy(state->session);
  OK(pipeloom_world_end(state->world, NULL));
  return 0;
}

int main(int argc, char** argv) {
  rank_state state;
  memset(&state, 0, sizeof(state));
  state.mode = argc > 1 ? argv[1] : "train";
  OK(pipeloom_world_join(argc > 2 ? argv[2] : NULL, 20000, &state.world));
  OK(pipeloom_world_info(state.world, &state.rank, NULL, &state.has_processes));
  if (is_mode(&state, "no_session") && state.rank == 1) return leave(&state, "ImportError");
  if (make_session(&state) != PIPELOOM_OK) return leave(&state, NULL);
  if (is_mode(&state, "refuses") && state.rank == 1) {
    CHECK(pipeloom_session_refuse(state.session, PIPELOOM_UNIMPLEMENTED, "control flow") != PIPELOOM_OK);
    return leave(&state, NULL);
  }
  pipeloom_module* module = mlp_with_own_backward(STAGES);
  pipeloom_program* program;
  OK(pipeloom_compile(module, NULL, &program));
  mlp_fill_weights(&state.weights);
  bind(&state, program);
  int loaded;
  if (pipeloom_session_load(state.session, program, &loaded) != PIPELOOM_OK) return leave(&state, NULL);
  pipeloom_program_destroy(program);
  pipeloom_module_destroy(module);
  return train(&state, loaded);
}
