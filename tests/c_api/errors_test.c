/* What is refused, with what text: each says what, the values, and what to do. Nothing of it ends the process. */
#include "tests/c_api/check.h"
#include "tests/c_api/mlp.h"

static const int64_t kRows[] = {3, 4}, kSquare[] = {4, 4};

typedef struct small {
  pipeloom_module* module;
  pipeloom_graph* graph;
  pipeloom_value x, w;
} small;

static small make_small(void) {
  small made;
  pipeloom_config config;
  pipeloom_config_init(&config);
  OK(pipeloom_module_create(&config, &made.module));
  OK(pipeloom_module_add_graph(made.module, "step", &made.graph));
  const pipeloom_type rows = mlp_type(PIPELOOM_F32, 2, kRows), square = mlp_type(PIPELOOM_F32, 2, kSquare);
  OK(pipeloom_graph_add_input(made.graph, "x", &rows, 0, &made.x));
  OK(pipeloom_graph_add_parameter(made.graph, "w", "net.weight", &square, 1, &made.w));
  return made;
}

static pipeloom_node node_of(const char* op, const pipeloom_value* operands, size_t count) {
  pipeloom_node node;
  pipeloom_node_init(&node);
  node.op = op;
  node.operands = operands;
  node.num_operands = count;
  node.num_results = 1;
  node.cell = "net.a";
  return node;
}

static void null_pointers(void) {
  pipeloom_module* module;
  pipeloom_graph* graph;
  const char* text;
  pipeloom_config config;
  pipeloom_config_init(&config);
  REFUSED(pipeloom_module_create(NULL, &module), PIPELOOM_INVALID_ARGUMENT, "the config is a null pointer");
  REFUSED(pipeloom_module_create(&config, NULL), PIPELOOM_INVALID_ARGUMENT,
          "the place for the module is a null pointer");
  config.schedule = NULL;
  REFUSED(pipeloom_module_create(&config, &module), PIPELOOM_INVALID_ARGUMENT, "the schedule is a null pointer");
  REFUSED(pipeloom_module_parse(NULL, &module), PIPELOOM_INVALID_ARGUMENT, "the text is a null pointer");
  REFUSED(pipeloom_module_add_graph(NULL, "step", &graph), PIPELOOM_INVALID_ARGUMENT, "the module is a null pointer");
  REFUSED(pipeloom_module_text(NULL, &text), PIPELOOM_INVALID_ARGUMENT, "the module is a null pointer");
  REFUSED(pipeloom_graph_add_output(NULL, 1, "sum"), PIPELOOM_INVALID_ARGUMENT, "the graph is a null pointer");
  REFUSED(pipeloom_compile(NULL, NULL, NULL), PIPELOOM_INVALID_ARGUMENT, "the module is a null pointer");
  REFUSED(pipeloom_session_create(1, NULL, NULL), PIPELOOM_INVALID_ARGUMENT,
          "the place for the session is a null pointer");
  REFUSED(pipeloom_session_load(NULL, NULL, NULL), PIPELOOM_INVALID_ARGUMENT, "the session is a null pointer");
  REFUSED(pipeloom_session_run(NULL, 0, NULL, 0, NULL, 0), PIPELOOM_INVALID_ARGUMENT, "the session is a null pointer");
  pipeloom_module_destroy(NULL);
  pipeloom_program_destroy(NULL);
  pipeloom_session_destroy(NULL);
  pipeloom_config_init(NULL);
  pipeloom_node_init(NULL);
}

static void types(void) {
  const small s = make_small();
  pipeloom_value value;
  pipeloom_type type = mlp_type(4, 2, kRows);
  REFUSED(pipeloom_graph_add_input(s.graph, "y", &type, 0, &value), PIPELOOM_INVALID_ARGUMENT,
          "the type of input y: dtype 4 is no PIPELOOM_F32, PIPELOOM_I32, PIPELOOM_I64 or PIPELOOM_BOOL");
  type = mlp_type(PIPELOOM_F32, -1, kRows);
  REFUSED(pipeloom_graph_add_input(s.graph, "y", &type, 0, &value), PIPELOOM_INVALID_ARGUMENT,
          "the type of input y: rank -1; give 0 to 64");
  type = mlp_type(PIPELOOM_F32, 2, NULL);
  REFUSED(pipeloom_graph_add_input(s.graph, "y", &type, 0, &value), PIPELOOM_INVALID_ARGUMENT,
          "the type of input y: rank 2 without extents");
  const int64_t negative[] = {3, -1};
  type = mlp_type(PIPELOOM_F32, 2, negative);
  REFUSED(pipeloom_graph_add_parameter(s.graph, "v", "net.v", &type, 1, &value), PIPELOOM_INVALID_ARGUMENT,
          "the type of parameter net.v: shape [3, -1]; extents are 0 or more, with a product of at most 2^60");
  type = mlp_type(PIPELOOM_F32, 2, kRows);
  REFUSED(pipeloom_graph_add_input(s.graph, "y", &type, 2, &value), PIPELOOM_INVALID_ARGUMENT,
          "input y: batch axis 2 is no axis of f32[3,4]");
  REFUSED(pipeloom_graph_add_parameter(s.graph, "v", "net.weight", &type, 1, &value), PIPELOOM_INVALID_ARGUMENT,
          "graph @step has parameter net.weight already; use its value everywhere");
  const double elements[] = {1, 2};
  REFUSED(pipeloom_graph_add_constant(s.graph, "c", &type, elements, 2, &value), PIPELOOM_INVALID_ARGUMENT,
          "a constant of type f32[3,4] has 1 or 12 elements, not 2");
  pipeloom_module_destroy(s.module);
}

static void nodes(void) {
  const small s = make_small();
  pipeloom_graph* second;
  OK(pipeloom_module_add_graph(s.module, "second", &second));
  pipeloom_value result;
  const pipeloom_value xw[] = {s.x, s.w}, wx[] = {s.w, s.x};
  pipeloom_node node = node_of("matmull", xw, 2);
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "matmull (cell 'net.a'): the op table has no such op; a host op needs its result types written");
  node = node_of("matmul", wx, 2);
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "matmul (cell 'net.a'): operand 0 f32[4,4] and operand 1 f32[3,4] do not multiply: 4 columns against 3 rows");
  node = node_of("matmul", xw, 2);
  const pipeloom_type square = mlp_type(PIPELOOM_F32, 2, kSquare);
  node.result_types = &square;
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "matmul (cell 'net.a'): gives f32[3,4], but f32[4,4] is written");
  node = node_of("matmul", xw, 2);
  node.num_results = 2;
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "matmul (cell 'net.a'): it gives 1 results, but num_results is 2");
  node = node_of("relu", NULL, 1);
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "relu (cell 'net.a'): the array of operands is a null pointer");
  REFUSED(pipeloom_graph_add_node(s.graph, NULL, &result), PIPELOOM_INVALID_ARGUMENT, "the node is a null pointer");
  node = node_of(NULL, xw, 2);
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "the op of a node is a null pointer");

  /* Values that are none: 0, one of another graph of the module, one that nobody gave out. */
  const pipeloom_value none = 0, invented = s.w + 1;
  node = node_of("relu", &none, 1);
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "relu (cell 'net.a'): operand 0 is no value of graph @step: 0; give what a call for this graph has written");
  node = node_of("relu", &invented, 1);
  CHECK(pipeloom_graph_add_node(s.graph, &node, &result) == PIPELOOM_INVALID_ARGUMENT);
  node = node_of("relu", &s.x, 1);
  CHECK(pipeloom_graph_add_node(second, &node, &result) == PIPELOOM_INVALID_ARGUMENT);
  CHECK(strstr(pipeloom_last_error(), "operand 0 is no value of graph @second: ") != NULL);

  /* Numbers that are none of the named ones. */
  node.phase = 3;
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "relu (cell 'net.a'): the phase is 3; give 0 to 2");
  node.phase = PIPELOOM_FORWARD;
  node.rate = -1;
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "relu (cell 'net.a'): the rate is -1; give 0 to 2");
  node.rate = PIPELOOM_RATE_USUAL;
  node.stage = -2;
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "relu (cell 'net.a'): the stage is -2; give PIPELOOM_NO_STAGE for none");

  pipeloom_attribute attributes[2];
  attributes[0].name = "transpose_a";
  attributes[0].kind = 5;
  attributes[1] = attributes[0];
  node = node_of("matmul", xw, 2);
  node.attributes = attributes;
  node.num_attributes = 1;
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "matmul (cell 'net.a'): attribute transpose_a has kind 5, which is no PIPELOOM_ATTRIBUTE_BOOL, INT, DOUBLE, "
          "STRING or INTS");
  attributes[0].kind = PIPELOOM_ATTRIBUTE_STRING;
  attributes[0].value.string = NULL;
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "matmul (cell 'net.a'): attribute transpose_a is a null pointer");
  attributes[0].value.string = "yes";
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "matmul (cell 'net.a'): attribute transpose_a=\"yes\" is of type string on (f32[3,4], f32[4,4]); give one of "
          "type bool");
  attributes[1] = attributes[0];
  node.num_attributes = 2;
  REFUSED(pipeloom_graph_add_node(s.graph, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "matmul (cell 'net.a'): attribute transpose_a is given twice");

  node = node_of(NULL, xw, 2);
  REFUSED(pipeloom_graph_add_call(s.graph, second, &node, &result), PIPELOOM_INVALID_ARGUMENT,
          "call of @second (cell 'net.a'): a call is of a block of the same module");
  REFUSED(pipeloom_graph_add_output(s.graph, none, "sum"), PIPELOOM_INVALID_ARGUMENT,
          "the output is no value of graph @step: 0; give what a call for this graph has written");
  pipeloom_module_destroy(s.module);
}

static void modules(void) {
  pipeloom_module* module;
  REFUSED(pipeloom_module_parse("graph @step() -> () {\n  %a = relu(%x) : f32[3]\n}", &module),
          PIPELOOM_INVALID_ARGUMENT, "line 2, column 13: '%x': no line above defines this value");
  small s = make_small();
  pipeloom_program* program;
  pipeloom_node node = node_of("relu", &s.x, 1);
  pipeloom_value y;
  OK(pipeloom_graph_add_node(s.graph, &node, &y));
  OK(pipeloom_graph_add_output(s.graph, y, "product"));
  REFUSED(pipeloom_compile(s.module, NULL, &program), PIPELOOM_INVALID_ARGUMENT,
          "graph @step: output %relu has reduce=\"product\"; choose one of sum, mean, concat, once, gradient");
  REFUSED(pipeloom_graph_add_output(s.graph, y, "sum"), PIPELOOM_FAILED_PRECONDITION,
          "the module was compiled, which took its graphs; make a new one");
  pipeloom_module_destroy(s.module);

  module = mlp_with_update_rule(2);
  OK(pipeloom_compile(module, NULL, &program));
  pipeloom_module_destroy(module);
  const pipeloom_parameter* parameter;
  REFUSED(pipeloom_program_find_parameter(program, 2, "net.layer1.weight", &parameter), PIPELOOM_INVALID_ARGUMENT,
          "the program has no rank 2; give 0 to 1");
  pipeloom_program_destroy(program);
}

static void sessions(void) {
  pipeloom_session* session;
  pipeloom_session_options options;
  REFUSED(pipeloom_session_create(0, NULL, &session), PIPELOOM_INVALID_ARGUMENT,
          "a session of 0 ranks; give 1 or more");
  pipeloom_session_options_init(&options);
  options.deadline_ms = 0;
  REFUSED(pipeloom_session_create(1, &options, &session), PIPELOOM_INVALID_ARGUMENT,
          "the deadline is 0 ms; give a positive one");
  pipeloom_session_options_init(&options);
  const char* const odd = "name";
  options.configuration = &odd;
  options.num_configuration = 1;
  REFUSED(pipeloom_session_create(1, &options, &session), PIPELOOM_INVALID_ARGUMENT,
          "the configuration has 1 strings; give a value after each name");
  mlp_host host = {0, 0, 0};
  pipeloom_session_options_init(&options);
  options.host_ops = mlp_host_ops(&host);
  options.host_ops.destroy = NULL;
  REFUSED(pipeloom_session_create(1, &options, &session), PIPELOOM_INVALID_ARGUMENT,
          "host ops need all of make, run and destroy, or none");

  OK(pipeloom_session_create(2, NULL, &session));
  pipeloom_module* module = mlp_with_own_backward(2);
  pipeloom_program* program;
  OK(pipeloom_compile(module, NULL, &program));
  pipeloom_module_destroy(module);
  int loaded = 0;
  REFUSED(pipeloom_session_load(session, program, &loaded), PIPELOOM_UNIMPLEMENTED,
          "cell net.layer1, host_relu %h: no kernel for host_relu of f32 on cpu; the op has none at all");
  REFUSED(pipeloom_session_run(session, 0, NULL, 0, NULL, 0), PIPELOOM_INVALID_ARGUMENT,
          "program 0 was never loaded; this session has 0");
  float weight[MLP_W1];
  const pipeloom_tensor tensor = mlp_w1_tensor(weight);
  REFUSED(pipeloom_session_read_parameter(session, "net.layer1.weight", &tensor), PIPELOOM_NOT_FOUND,
          "no program of this session uses parameter net.layer1.weight");
  pipeloom_session_destroy(session);
  OK(pipeloom_session_create(3, NULL, &session));
  REFUSED(pipeloom_session_load(session, program, &loaded), PIPELOOM_INVALID_ARGUMENT,
          "the program is for 2 ranks; the session has 3");
  pipeloom_session_destroy(session);
  pipeloom_program_destroy(program);
}

static pipeloom_session* load_mlp(const pipeloom_host_ops* ops, int* loaded) {
  pipeloom_session_options options;
  pipeloom_session_options_init(&options);
  options.host_ops = *ops;
  pipeloom_session* session;
  OK(pipeloom_session_create(2, &options, &session));
  pipeloom_module* module = mlp_with_own_backward(2);
  pipeloom_program* program;
  OK(pipeloom_compile(module, NULL, &program));
  pipeloom_module_destroy(module);
  OK(pipeloom_session_load(session, program, loaded));
  pipeloom_program_destroy(program);
  return session;
}

static void steps(void) {
  mlp_host host = {0, 0, 0};
  const pipeloom_host_ops ops = mlp_host_ops(&host);
  int loaded;
  pipeloom_session* session = load_mlp(&ops, &loaded);
  static mlp_batch batch;
  mlp_fill_batch(0, &batch);
  const int64_t x[] = {MLP_BATCH, MLP_IN}, labels[] = {MLP_BATCH};
  float loss;
  pipeloom_tensor inputs[2], output;
  inputs[0].type = mlp_type(PIPELOOM_F32, 2, x);
  inputs[0].data = batch.x;
  inputs[1].type = mlp_type(PIPELOOM_I32, 1, labels);
  inputs[1].data = batch.labels;
  output.type = mlp_type(PIPELOOM_F32, 0, NULL);
  output.data = &loss;
  REFUSED(pipeloom_session_run(session, loaded, inputs, 1, &output, 1), PIPELOOM_INVALID_ARGUMENT,
          "the program has 2 inputs; 1 were given");
  inputs[1].type.dtype = PIPELOOM_F32;
  REFUSED(pipeloom_session_run(session, loaded, inputs, 2, &output, 1), PIPELOOM_INVALID_ARGUMENT,
          "input 1 is f32[12]; the program was compiled for i32[12]");
  inputs[1].type.dtype = 17;
  REFUSED(pipeloom_session_run(session, loaded, inputs, 2, &output, 1), PIPELOOM_INVALID_ARGUMENT,
          "input 1: dtype 17 is no PIPELOOM_F32, PIPELOOM_I32, PIPELOOM_I64 or PIPELOOM_BOOL");
  inputs[1].type.dtype = PIPELOOM_I32;
  output.data = NULL;
  REFUSED(pipeloom_session_run(session, loaded, inputs, 2, &output, 1), PIPELOOM_INVALID_ARGUMENT,
          "output 0 has no data");
  /* None of these has harmed the session. */
  mlp_run(session, loaded, &batch);
  batch.labels[7] = MLP_CLASSES;
  output.data = &loss;
  REFUSED(
      pipeloom_session_run(session, loaded, inputs, 2, &output, 1), PIPELOOM_OUT_OF_RANGE,
      "step 1, rank 1, 1F2, cell loss, softmax_cross_entropy %loss: softmax_cross_entropy: label 4 at position 1 is "
      "not in [0, 4); correct the label, give logits of more classes, or mark it to be ignored with -100");
  pipeloom_session_destroy(session);
  CHECK(host.made == host.destroyed);
}

static int failing_run(void* kernel, const void* const* inputs, void* const* outputs) {
  (void)kernel;
  (void)inputs;
  (void)outputs;
  pipeloom_set_error("the device is on fire");
  return PIPELOOM_UNAVAILABLE;
}

static int silent_run(void* kernel, const void* const* inputs, void* const* outputs) {
  (void)kernel;
  (void)inputs;
  (void)outputs;
  return 4711;
}

static int failing_make(void* user, const pipeloom_host_op* op, void** kernel) {
  (void)user;
  (void)kernel;
  char text[64];
  snprintf(text, sizeof(text), "%s of rank %d is not for us", op->op, op->inputs[0].rank);
  pipeloom_set_error(text);
  return PIPELOOM_UNIMPLEMENTED;
}

static void callbacks(void) {
  mlp_host host = {0, 0, 0};
  pipeloom_host_ops ops = mlp_host_ops(&host);
  ops.run = failing_run;
  int loaded;
  pipeloom_session* session = load_mlp(&ops, &loaded);
  static mlp_batch batch;
  mlp_fill_batch(0, &batch);
  const int64_t x[] = {MLP_BATCH, MLP_IN}, labels[] = {MLP_BATCH};
  float loss;
  pipeloom_tensor inputs[2], output;
  inputs[0].type = mlp_type(PIPELOOM_F32, 2, x);
  inputs[0].data = batch.x;
  inputs[1].type = mlp_type(PIPELOOM_I32, 1, labels);
  inputs[1].data = batch.labels;
  output.type = mlp_type(PIPELOOM_F32, 0, NULL);
  output.data = &loss;
  const char* on_fire = "step 0, rank 0, 0F0, cell net.layer1, host_relu %h: the host's kernel: the device is on fire";
  REFUSED(pipeloom_session_run(session, loaded, inputs, 2, &output, 1), PIPELOOM_UNAVAILABLE, on_fire);
  char later[256];
  snprintf(later, sizeof(later), "an earlier step failed, and this session can only be read; make a new one: %s",
           on_fire);
  REFUSED(pipeloom_session_run(session, loaded, inputs, 2, &output, 1), PIPELOOM_FAILED_PRECONDITION, later);
  pipeloom_session_destroy(session);

  ops.run = silent_run;
  session = load_mlp(&ops, &loaded);
  REFUSED(pipeloom_session_run(session, loaded, inputs, 2, &output, 1), PIPELOOM_UNKNOWN,
          "step 0, rank 0, 0F0, cell net.layer1, host_relu %h: the host's kernel returned code 4711 and no text");
  pipeloom_session_destroy(session);

  pipeloom_session_options options;
  pipeloom_session_options_init(&options);
  options.host_ops = mlp_host_ops(&host);
  options.host_ops.make = failing_make;
  OK(pipeloom_session_create(2, &options, &session));
  pipeloom_module* module = mlp_with_own_backward(2);
  pipeloom_program* program;
  OK(pipeloom_compile(module, NULL, &program));
  REFUSED(pipeloom_session_load(session, program, &loaded), PIPELOOM_UNIMPLEMENTED,
          "cell net.layer1, host_relu %h: the host has no kernel: host_relu of rank 2 is not for us");
  pipeloom_module_destroy(module);
  pipeloom_program_destroy(program);
  pipeloom_session_destroy(session);

  session = NULL;
  OK(pipeloom_session_create(2, NULL, &session));
  REFUSED(pipeloom_session_refuse(session, PIPELOOM_UNIMPLEMENTED, "control flow"), PIPELOOM_UNIMPLEMENTED,
          "control flow");
  OK(pipeloom_session_fail(session, PIPELOOM_ABORTED, "the host has had enough"));
  module = mlp_with_update_rule(2);
  OK(pipeloom_compile(module, NULL, &program));
  REFUSED(pipeloom_session_load(session, program, &loaded), PIPELOOM_FAILED_PRECONDITION,
          "an earlier step failed, and this session can only be read; make a new one: the host has had enough");
  pipeloom_module_destroy(module);
  pipeloom_program_destroy(program);
  pipeloom_session_destroy(session);
}

static void worlds(void) {
  pipeloom_world* world;
  pipeloom_session* session;
  REFUSED(pipeloom_world_join("pigeons", 1000, &world), PIPELOOM_INVALID_ARGUMENT,
          "--transport=pigeons is unknown; choose one of auto, threads, mpi, shm");
  REFUSED(pipeloom_world_join("shm", 1000, &world), PIPELOOM_FAILED_PRECONDITION,
          "transport shm is for ranks that a launcher started, and none did; start this process with mpirun, or set "
          "PIPELOOM_RANK, PIPELOOM_WORLD_SIZE and PIPELOOM_RENDEZVOUS, or use threads");
  OK(pipeloom_world_join(NULL, 1000, &world));
  int rank, size, has_processes;
  OK(pipeloom_world_info(world, &rank, &size, &has_processes));
  CHECK(rank == 0 && size == 1 && has_processes == 0);
  REFUSED(pipeloom_session_create_for_rank(world, NULL, &session), PIPELOOM_FAILED_PRECONDITION,
          "no launcher started ranks; make a session of threads");
  OK(pipeloom_world_end(world, NULL));
}

int main(void) {
  CHECK(*pipeloom_last_error() == 0);
  null_pointers();
  types();
  nodes();
  modules();
  sessions();
  steps();
  callbacks();
  worlds();
  return 0;
}
