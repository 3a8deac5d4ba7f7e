/* A project of its own that uses Pipeloom as it is installed: header and shared library. */
#include <pipeloom.h>
#include <stdio.h>

static const char kText[] =
    "pipeline {micro_batches=2, schedule=\"forward\", stages=2}\n"
    "stage \"a\" = 0\n"
    "stage \"b\" = 1\n"
    "graph @step(%x: f32[1,2] {batch_axis=0}) -> (%y {reduce=\"concat\"}) {\n"
    "  %w = param \"w\" : f32[2,2]\n"
    "  %h = matmul(%x, %w) : f32[1,2]  // a, forward\n"
    "  %y = relu(%h) : f32[1,2]  // b, forward\n"
    "}\n";

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, pipeloom_last_error());
  return 1;
}

int main(void) {
  const int64_t extents[] = {2, 2};
  float w[] = {1, 2, -3, 4}, x[] = {1, 1, 2, 0}, y[4];
  pipeloom_tensor tensor[3];
  for (int i = 0; i < 3; ++i) {
    tensor[i].type.dtype = PIPELOOM_F32;
    tensor[i].type.rank = 2;
    tensor[i].type.extents = extents;
  }
  tensor[0].data = w;
  tensor[1].data = x;
  tensor[2].data = y;
  pipeloom_module* module;
  pipeloom_program* program;
  pipeloom_session* session;
  int loaded;
  if (pipeloom_api_version() != PIPELOOM_API_VERSION) return failed("another version");
  if (pipeloom_module_parse(kText, &module)) return failed("parse");
  if (pipeloom_compile(module, NULL, &program)) return failed("compile");
  if (pipeloom_session_create(2, NULL, &session)) return failed("session");
  if (pipeloom_session_bind_parameter(session, 0, "w", &tensor[0])) return failed("bind");
  if (pipeloom_session_load(session, program, &loaded)) return failed("load");
  if (pipeloom_session_run(session, loaded, &tensor[1], 1, &tensor[2], 1)) return failed("run");
  printf("y = %g %g %g %g\n", y[0], y[1], y[2], y[3]);
  pipeloom_session_destroy(session);
  pipeloom_program_destroy(program);
  pipeloom_module_destroy(module);
  return 0;
}
