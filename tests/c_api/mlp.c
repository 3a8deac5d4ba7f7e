#include "tests/c_api/mlp.h"

#include <math.h>

#include "tests/c_api/check.h"

static const double kRate = 0.25;

void mlp_fill_batch(int step, mlp_batch* batch) {
  for (int i = 0; i < MLP_BATCH * MLP_IN; ++i) batch->x[i] = 0.25f * (float)((i * 7 + step * 5) % 13) - 1.4f;
  for (int i = 0; i < MLP_BATCH; ++i) batch->labels[i] = (i * 3 + step) % MLP_CLASSES;
}

void mlp_fill_weights(mlp_weights* weights) {
  for (int i = 0; i < MLP_W1; ++i) weights->w1[i] = 0.1f * (float)((i * 5) % 11) - 0.5f;
  for (int i = 0; i < MLP_W2; ++i) weights->w2[i] = 0.1f * (float)((i * 3) % 7) - 0.3f;
}

pipeloom_type mlp_type(int dtype, int rank, const int64_t* extents) {
  pipeloom_type type;
  type.dtype = dtype;
  type.rank = rank;
  type.extents = extents;
  return type;
}

static const int64_t kX[] = {MLP_ROWS, MLP_IN}, kLabels[] = {MLP_ROWS};
static const int64_t kW1[] = {MLP_IN, MLP_HIDDEN}, kW2[] = {MLP_HIDDEN, MLP_CLASSES};
static const int64_t kH[] = {MLP_ROWS, MLP_HIDDEN};

pipeloom_tensor mlp_w1_tensor(float* data) {
  pipeloom_tensor tensor;
  tensor.type = mlp_type(PIPELOOM_F32, 2, kW1);
  tensor.data = data;
  return tensor;
}

pipeloom_tensor mlp_w2_tensor(float* data) {
  pipeloom_tensor tensor;
  tensor.type = mlp_type(PIPELOOM_F32, 2, kW2);
  tensor.data = data;
  return tensor;
}

/* ---- Building ---------------------------------------------------------------------------------------------------- */

typedef struct leaves {
  pipeloom_module* module;
  pipeloom_graph* graph;
  pipeloom_value x, labels, w1, w2;
} leaves;

static leaves begin(int stages) {
  leaves made;
  pipeloom_config config;
  pipeloom_config_init(&config);
  config.stages = stages;
  config.micro_batches = MLP_MICRO_BATCHES;
  OK(pipeloom_module_create(&config, &made.module));
  OK(pipeloom_module_set_stage(made.module, "net.layer1", 0));
  OK(pipeloom_module_set_stage(made.module, "net.layer2", stages - 1));
  OK(pipeloom_module_set_stage(made.module, "loss", stages - 1));
  OK(pipeloom_module_add_graph(made.module, "step", &made.graph));
  const pipeloom_type x = mlp_type(PIPELOOM_F32, 2, kX), labels = mlp_type(PIPELOOM_I32, 1, kLabels);
  const pipeloom_type w1 = mlp_type(PIPELOOM_F32, 2, kW1), w2 = mlp_type(PIPELOOM_F32, 2, kW2);
  OK(pipeloom_graph_add_input(made.graph, "x", &x, 0, &made.x));
  OK(pipeloom_graph_add_input(made.graph, "labels", &labels, 0, &made.labels));
  OK(pipeloom_graph_add_parameter(made.graph, "w1", "net.layer1.weight", &w1, 1, &made.w1));
  OK(pipeloom_graph_add_parameter(made.graph, "w2", "net.layer2.weight", &w2, 1, &made.w2));
  return made;
}

/* A node with up to three operands; 0 stands for none. One result, or none in an update. */
typedef struct node {
  const char *op, *name, *cell;
  int phase;
  pipeloom_value a, b, c;
  const pipeloom_attribute* attribute;
  const pipeloom_type* type; /* of a host op */
} node;

static pipeloom_value add(pipeloom_graph* graph, node given) {
  pipeloom_node wanted;
  pipeloom_node_init(&wanted);
  const pipeloom_value operands[] = {given.a, given.b, given.c};
  wanted.op = given.op;
  wanted.operands = operands;
  while (wanted.num_operands < 3 && operands[wanted.num_operands] != 0) ++wanted.num_operands;
  wanted.attributes = given.attribute;
  wanted.num_attributes = given.attribute == NULL ? 0 : 1;
  wanted.num_results = given.phase == PIPELOOM_UPDATE ? 0 : 1;
  wanted.result_types = given.type;
  wanted.result_names = &given.name;
  wanted.cell = given.cell;
  wanted.phase = given.phase;
  pipeloom_value result = 0;
  OK(pipeloom_graph_add_node(graph, &wanted, &result));
  return result;
}

static pipeloom_attribute rate(void) {
  pipeloom_attribute lr;
  lr.name = "lr";
  lr.kind = PIPELOOM_ATTRIBUTE_DOUBLE;
  lr.value.real = kRate;
  return lr;
}

static pipeloom_attribute flag(const char* name) {
  pipeloom_attribute set;
  set.name = name;
  set.kind = PIPELOOM_ATTRIBUTE_BOOL;
  set.value.boolean = 1;
  return set;
}

pipeloom_module* mlp_with_update_rule(int stages) {
  const leaves l = begin(stages);
  const pipeloom_value a =
      add(l.graph, (node){"matmul", "a", "net.layer1", PIPELOOM_FORWARD, l.x, l.w1, 0, NULL, NULL});
  const pipeloom_value h = add(l.graph, (node){"relu", "h", "net.layer1", PIPELOOM_FORWARD, a, 0, 0, NULL, NULL});
  const pipeloom_value y = add(l.graph, (node){"matmul", "y", "net.layer2", PIPELOOM_FORWARD, h, l.w2, 0, NULL, NULL});
  const pipeloom_value loss =
      add(l.graph, (node){"softmax_cross_entropy", "loss", "loss", PIPELOOM_FORWARD, y, l.labels, 0, NULL, NULL});
  OK(pipeloom_graph_add_output(l.graph, loss, "mean"));
  const pipeloom_attribute lr = rate();
  OK(pipeloom_graph_set_update(l.graph, "sgd", &lr, 1));
  return l.module;
}

pipeloom_module* mlp_with_own_backward(int stages) {
  const leaves l = begin(stages);
  const pipeloom_type scalar = mlp_type(PIPELOOM_F32, 0, NULL), hidden = mlp_type(PIPELOOM_F32, 2, kH);
  const pipeloom_attribute transpose_a = flag("transpose_a"), transpose_b = flag("transpose_b"), lr = rate();
  const char *c1 = "net.layer1", *c2 = "net.layer2";
  const double share = 1.0 / MLP_MICRO_BATCHES;
  pipeloom_value seed;
  OK(pipeloom_graph_add_constant(l.graph, "seed", &scalar, &share, 1, &seed));
  const pipeloom_value a = add(l.graph, (node){"matmul", "a", c1, PIPELOOM_FORWARD, l.x, l.w1, 0, NULL, NULL});
  const pipeloom_value h = add(l.graph, (node){"host_relu", "h", c1, PIPELOOM_FORWARD, a, 0, 0, NULL, &hidden});
  const pipeloom_value y = add(l.graph, (node){"matmul", "y", c2, PIPELOOM_FORWARD, h, l.w2, 0, NULL, NULL});
  const pipeloom_value loss =
      add(l.graph, (node){"softmax_cross_entropy", "loss", "loss", PIPELOOM_FORWARD, y, l.labels, 0, NULL, NULL});
  const pipeloom_value dy = add(
      l.graph, (node){"softmax_cross_entropy_grad", "d.y", "loss", PIPELOOM_BACKWARD, seed, y, l.labels, NULL, NULL});
  const pipeloom_value dw2 =
      add(l.graph, (node){"matmul", "d.w2", c2, PIPELOOM_BACKWARD, h, dy, 0, &transpose_a, NULL});
  const pipeloom_value dh =
      add(l.graph, (node){"matmul", "d.h", c2, PIPELOOM_BACKWARD, dy, l.w2, 0, &transpose_b, NULL});
  const pipeloom_value da =
      add(l.graph, (node){"host_relu_grad", "d.a", c1, PIPELOOM_BACKWARD, dh, h, 0, NULL, &hidden});
  const pipeloom_value dw1 =
      add(l.graph, (node){"matmul", "d.w1", c1, PIPELOOM_BACKWARD, l.x, da, 0, &transpose_a, NULL});
  add(l.graph, (node){"sgd", NULL, c1, PIPELOOM_UPDATE, l.w1, dw1, 0, &lr, NULL});
  add(l.graph, (node){"sgd", NULL, c2, PIPELOOM_UPDATE, l.w2, dw2, 0, &lr, NULL});
  OK(pipeloom_graph_add_output(l.graph, loss, "mean"));
  return l.module;
}

/* ---- Host ops ---------------------------------------------------------------------------------------------------- */

typedef struct relu_kernel {
  mlp_host* host;
  int is_gradient;
  int64_t elements;
} relu_kernel;

static int make_relu(void* user, const pipeloom_host_op* op, void** kernel) {
  const int is_gradient = strcmp(op->op, "host_relu_grad") == 0;
  if (!is_gradient && strcmp(op->op, "host_relu") != 0) {
    char text[128];
    snprintf(text, sizeof(text), "the framework has no op %.60s", op->op);
    pipeloom_set_error(text);
    return PIPELOOM_NOT_FOUND;
  }
  CHECK(op->num_inputs == (size_t)(is_gradient ? 2 : 1) && op->num_outputs == 1 && op->threads == 1);
  CHECK(op->inputs[0].rank == 2 && op->inputs[0].dtype == PIPELOOM_F32);
  relu_kernel* made = malloc(sizeof(*made));
  CHECK(made != NULL);
  made->host = user;
  made->is_gradient = is_gradient;
  made->elements = op->inputs[0].extents[0] * op->inputs[0].extents[1];
  __atomic_fetch_add(&made->host->made, 1, __ATOMIC_RELAXED);
  *kernel = made;
  return PIPELOOM_OK;
}

static int run_relu(void* kernel, const void* const* inputs, void* const* outputs) {
  const relu_kernel* relu = kernel;
  const float* in = inputs[0];
  const float* forward = relu->is_gradient ? inputs[1] : in;
  float* out = outputs[0];
  for (int64_t i = 0; i < relu->elements; ++i) out[i] = forward[i] > 0.0f ? in[i] : 0.0f;
  __atomic_fetch_add(&relu->host->ran, 1, __ATOMIC_RELAXED);
  return PIPELOOM_OK;
}

static void destroy_relu(void* kernel) {
  relu_kernel* relu = kernel;
  __atomic_fetch_add(&relu->host->destroyed, 1, __ATOMIC_RELAXED);
  free(relu);
}

pipeloom_host_ops mlp_host_ops(mlp_host* host) {
  pipeloom_host_ops ops;
  ops.user = host;
  ops.make = make_relu;
  ops.run = run_relu;
  ops.destroy = destroy_relu;
  return ops;
}

float mlp_run(pipeloom_session* session, int loaded, mlp_batch* batch) {
  static const int64_t x[] = {MLP_BATCH, MLP_IN}, labels[] = {MLP_BATCH};
  float loss = -1.0f;
  pipeloom_tensor inputs[2], output;
  inputs[0].type = mlp_type(PIPELOOM_F32, 2, x);
  inputs[0].data = batch->x;
  inputs[1].type = mlp_type(PIPELOOM_I32, 1, labels);
  inputs[1].data = batch->labels;
  output.type = mlp_type(PIPELOOM_F32, 0, NULL);
  output.data = &loss;
  OK(pipeloom_session_run(session, loaded, inputs, 2, &output, 1));
  return loss;
}

/* ---- Reference --------------------------------------------------------------------------------------------------- */

void mlp_reference_begin(const mlp_weights* weights, mlp_reference* reference) {
  for (int i = 0; i < MLP_W1; ++i) reference->w1[i] = weights->w1[i];
  for (int i = 0; i < MLP_W2; ++i) reference->w2[i] = weights->w2[i];
}

double mlp_reference_step(mlp_reference* reference, const mlp_batch* batch) {
  double dw1[MLP_W1] = {0}, dw2[MLP_W2] = {0}, loss = 0;
  for (int row = 0; row < MLP_BATCH; ++row) {
    const float* x = &batch->x[row * MLP_IN];
    double h[MLP_HIDDEN], y[MLP_CLASSES], total = 0;
    for (int j = 0; j < MLP_HIDDEN; ++j) {
      h[j] = 0;
      for (int i = 0; i < MLP_IN; ++i) h[j] += x[i] * reference->w1[i * MLP_HIDDEN + j];
      if (h[j] < 0) h[j] = 0;
    }
    for (int k = 0; k < MLP_CLASSES; ++k) {
      y[k] = 0;
      for (int j = 0; j < MLP_HIDDEN; ++j) y[k] += h[j] * reference->w2[j * MLP_CLASSES + k];
      total += exp(y[k]);
    }
    loss += (log(total) - y[batch->labels[row]]) / MLP_BATCH;
    for (int k = 0; k < MLP_CLASSES; ++k) {
      const double dy = (exp(y[k]) / total - (k == batch->labels[row] ? 1 : 0)) / MLP_BATCH;
      for (int j = 0; j < MLP_HIDDEN; ++j) {
        dw2[j * MLP_CLASSES + k] += h[j] * dy;
        if (h[j] <= 0) continue;
        for (int i = 0; i < MLP_IN; ++i) dw1[i * MLP_HIDDEN + j] += x[i] * dy * reference->w2[j * MLP_CLASSES + k];
      }
    }
  }
  for (int i = 0; i < MLP_W1; ++i) reference->w1[i] -= kRate * dw1[i];
  for (int i = 0; i < MLP_W2; ++i) reference->w2[i] -= kRate * dw2[i];
  return loss;
}
