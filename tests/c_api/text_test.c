/* Modules and their text: what is built prints, what prints parses, and a program says what it takes and gives. */
#include "tests/c_api/check.h"
#include "tests/c_api/mlp.h"

static const int64_t kRows[] = {3, 4}, kSquare[] = {4, 4};

static pipeloom_value add_node(pipeloom_graph* graph, const char* op, const char* name, pipeloom_value a,
                               pipeloom_value b) {
  pipeloom_node node;
  pipeloom_node_init(&node);
  const pipeloom_value operands[] = {a, b};
  node.op = op;
  node.operands = operands;
  node.num_operands = b == 0 ? 1 : 2;
  node.num_results = 1;
  node.result_names = &name;
  pipeloom_value result;
  OK(pipeloom_graph_add_node(graph, &node, &result));
  return result;
}

static const char kBlocks[] =
    "pipeline {micro_batches=2, schedule=\"forward\", stages=2, threads=1}\n"
    "stage \"net.0\" = 0\n"
    "stage \"net.1\" = 1\n"
    "\n"
    "block @dense(%x: f32[3,4]) -> (%h) {\n"
    "  %weight = param \"weight\" : f32[4,4]\n"
    "  %a = matmul(%x, %weight) : f32[3,4]  // forward\n"
    "  %h = relu(%a) : f32[3,4]  // forward\n"
    "}\n"
    "\n"
    "graph @step(%x: f32[3,4] {batch_axis=0}) -> (%y {reduce=\"concat\"}) {\n"
    "  %net.0.weight = param \"net.0.weight\" : f32[4,4]\n"
    "  %net.1.weight = param \"net.1.weight\" : f32[4,4]\n"
    "  %h = call(%x, %net.0.weight) {block=\"dense\"} : f32[3,4]  // net.0, forward\n"
    "  %y = call(%h, %net.1.weight) {block=\"dense\"} : f32[3,4]  // net.1, forward\n"
    "}\n";

static pipeloom_module* build_blocks(void) {
  pipeloom_config config;
  pipeloom_config_init(&config);
  config.stages = 2;
  config.micro_batches = 2;
  config.schedule = "forward";
  pipeloom_module* module;
  OK(pipeloom_module_create(&config, &module));
  OK(pipeloom_module_set_stage(module, "net.0", 0));
  OK(pipeloom_module_set_stage(module, "net.1", 1));

  const pipeloom_type rows = mlp_type(PIPELOOM_F32, 2, kRows), square = mlp_type(PIPELOOM_F32, 2, kSquare);
  pipeloom_graph* block;
  OK(pipeloom_module_add_block(module, "dense", &block));
  pipeloom_value x, weight;
  OK(pipeloom_graph_add_input(block, "x", &rows, PIPELOOM_NO_BATCH_AXIS, &x));
  OK(pipeloom_graph_add_parameter(block, NULL, "weight", &square, 1, &weight));
  OK(pipeloom_graph_add_output(block, add_node(block, "relu", "h", add_node(block, "matmul", "a", x, weight), 0), ""));

  pipeloom_graph* graph;
  OK(pipeloom_module_add_graph(module, "step", &graph));
  pipeloom_value weights[2], value;
  OK(pipeloom_graph_add_input(graph, "x", &rows, 0, &value));
  OK(pipeloom_graph_add_parameter(graph, NULL, "net.0.weight", &square, 1, &weights[0]));
  OK(pipeloom_graph_add_parameter(graph, NULL, "net.1.weight", &square, 1, &weights[1]));
  const char* cells[] = {"net.0", "net.1"};
  const char* names[] = {"h", "y"};
  for (int i = 0; i < 2; ++i) {
    pipeloom_node call;
    pipeloom_node_init(&call);
    const pipeloom_value operands[] = {value, weights[i]};
    call.operands = operands;
    call.num_operands = 2;
    call.num_results = 1;
    call.result_names = &names[i];
    call.cell = cells[i];
    OK(pipeloom_graph_add_call(graph, block, &call, &value));
  }
  OK(pipeloom_graph_add_output(graph, value, "concat"));
  return module;
}

static void expect_text(pipeloom_module* module, const char* wanted) {
  const char* text;
  OK(pipeloom_module_text(module, &text));
  SAME_TEXT(text, wanted);
}

static void expect_type(const pipeloom_type* type, int dtype, int rank, int64_t first, int64_t second) {
  CHECK(type->dtype == dtype && type->rank == rank);
  CHECK(type->extents[0] == first && (rank < 2 || type->extents[1] == second));
}

static void expect_file(const char* folder, const char* name, const char* wanted) {
  char path[512], text[2048];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE* file = fopen(path, "r");
  CHECK(file != NULL);
  text[fread(text, 1, sizeof(text) - 1, file)] = 0;
  fclose(file);
  SAME_TEXT(text, wanted);
}

static void blocks_and_their_program(void) {
  pipeloom_module* module = build_blocks();
  expect_text(module, kBlocks);
  pipeloom_module* parsed;
  OK(pipeloom_module_parse(kBlocks, &parsed));
  expect_text(parsed, kBlocks);
  pipeloom_module_destroy(parsed);

  char dump[512];
  const char* folder = getenv("TEST_TMPDIR");
  CHECK(folder != NULL);
  snprintf(dump, sizeof(dump), "%s/dump", folder);
  pipeloom_compile_options options;
  pipeloom_compile_options_init(&options);
  options.dump_dir = dump;
  pipeloom_program* program;
  OK(pipeloom_compile(module, &options, &program));
  pipeloom_module_destroy(module);
  expect_file(folder, "dump/00_input.txt", kBlocks);
  int ranks;
  OK(pipeloom_program_ranks(program, &ranks));
  CHECK(ranks == 2);
  const pipeloom_type* types;
  size_t count;
  OK(pipeloom_program_inputs(program, &types, &count));
  CHECK(count == 1);
  expect_type(types, PIPELOOM_F32, 2, 6, 4);
  OK(pipeloom_program_outputs(program, &types, &count));
  CHECK(count == 1);
  expect_type(types, PIPELOOM_F32, 2, 6, 4);
  const pipeloom_parameter* parameters;
  OK(pipeloom_program_parameters(program, 1, &parameters, &count));
  CHECK(count == 1 && parameters[0].written == 0);
  SAME_TEXT(parameters[0].name, "net.1.weight");
  expect_type(&parameters[0].type, PIPELOOM_F32, 2, 4, 4);
  const pipeloom_parameter* found;
  OK(pipeloom_program_find_parameter(program, 1, "net.1.weight", &found));
  CHECK(found == parameters);
  OK(pipeloom_program_find_parameter(program, 0, "net.1.weight", &found));
  CHECK(found == NULL);
  pipeloom_program_destroy(program);
}

static void every_kind_of_attribute(void) {
  static const char kText[] =
      "pipeline {micro_batches=1, schedule=\"1f1b\", stages=1, threads=1}\n"
      "\n"
      "graph @step(%x: f32[3,4] {batch_axis=0}) -> (%sum {reduce=\"sum\"}) {\n"
      "  %ids = constant [0, 2, 1] : i64[3]\n"
      "  %rows, %order = fw.sort(%x, %ids) {axes=[0,-1], axis=1, eps=0.125, mode=\"a b\", stable} : f32[3,4], i64[3]  "
      "// net.sort, stage 0, forward\n"
      "  fw.log(%order) : ()  // net.sort, backward, step\n"
      "  %sum = reduce_sum(%rows) : f32[]  // forward\n"
      "}\n";
  pipeloom_config config;
  pipeloom_config_init(&config);
  pipeloom_module* module;
  pipeloom_graph* graph;
  OK(pipeloom_module_create(&config, &module));
  OK(pipeloom_module_add_graph(module, "step", &graph));
  const int64_t three = 3, axes[] = {0, -1};
  const double elements[] = {0, 2, 1};
  const pipeloom_type types[] = {mlp_type(PIPELOOM_F32, 2, kRows), mlp_type(PIPELOOM_I64, 1, &three)};
  pipeloom_value operands[2], results[2];
  OK(pipeloom_graph_add_input(graph, "x", &types[0], 0, &operands[0]));
  OK(pipeloom_graph_add_constant(graph, "ids", &types[1], elements, 3, &operands[1]));
  pipeloom_attribute attributes[5];
  attributes[0].name = "stable";
  attributes[0].kind = PIPELOOM_ATTRIBUTE_BOOL;
  attributes[0].value.boolean = 1;
  attributes[1].name = "axis";
  attributes[1].kind = PIPELOOM_ATTRIBUTE_INT;
  attributes[1].value.integer = 1;
  attributes[2].name = "eps";
  attributes[2].kind = PIPELOOM_ATTRIBUTE_DOUBLE;
  attributes[2].value.real = 0.125;
  attributes[3].name = "mode";
  attributes[3].kind = PIPELOOM_ATTRIBUTE_STRING;
  attributes[3].value.string = "a b";
  attributes[4].name = "axes";
  attributes[4].kind = PIPELOOM_ATTRIBUTE_INTS;
  attributes[4].value.integers.elements = axes;
  attributes[4].value.integers.count = 2;
  const char* names[] = {"rows", "order"};
  pipeloom_node node;
  pipeloom_node_init(&node);
  node.op = "fw.sort";
  node.operands = operands;
  node.num_operands = 2;
  node.attributes = attributes;
  node.num_attributes = 5;
  node.result_types = types;
  node.num_results = 2;
  node.result_names = names;
  node.cell = "net.sort";
  node.stage = 0;
  OK(pipeloom_graph_add_node(graph, &node, results));
  pipeloom_node_init(&node);
  node.op = "fw.log";
  node.operands = &results[1];
  node.num_operands = 1;
  node.cell = "net.sort";
  node.phase = PIPELOOM_BACKWARD;
  node.rate = PIPELOOM_RATE_STEP;
  OK(pipeloom_graph_add_node(graph, &node, NULL));
  OK(pipeloom_graph_add_output(graph, add_node(graph, "reduce_sum", "sum", results[0], 0), "sum"));
  expect_text(module, kText);
  pipeloom_module* parsed;
  OK(pipeloom_module_parse(kText, &parsed));
  expect_text(parsed, kText);
  pipeloom_module_destroy(parsed);
  pipeloom_module_destroy(module);
}

int main(void) {
  blocks_and_their_program();
  every_kind_of_attribute();
  return 0;
}
