/* Pipeloom for hosts in other languages, compilers and ABIs: plain C99, no exception and no C++ type crosses it.
 *
 * A host builds a module (graphs of nodes), compiles it, and runs the program in a session:
 *
 *   pipeloom_module_create -> graph building -> pipeloom_compile -> pipeloom_session_load -> pipeloom_session_run ...
 *
 * Calls return PIPELOOM_OK or one of the other codes; pipeloom_last_error() then says what, which values, and what to
 * do. What is written through pointers (the last arguments) is written only on PIPELOOM_OK. Handles are pointers that
 * only this library looks into; a null one is refused, one that was destroyed is as bad as any freed pointer. Names
 * and other strings are UTF-8 that ends in 0, copied by the call; where a call gives out strings, types or arrays, they
 * belong to the handle and live as long as it unless another call is named that ends them. A handle is used by one
 * thread at a time. What a structure's fields are by default is said by the _init function of it.
 *
 * Ops, attributes, phases, rates, blocks and the text form are those of Pipeloom's graphs: docs/design.md. */
#ifndef PLUGIN_C_API_PIPELOOM_H_
#define PLUGIN_C_API_PIPELOOM_H_

/* NOLINTBEGIN(readability-identifier-naming,modernize-use-using): names of C. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change that a host compiled before it would not survive. */
#define PIPELOOM_API_VERSION 1
/* That of the library, to compare with the header's. */
int pipeloom_api_version(void);

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

enum {
  PIPELOOM_OK = 0,
  PIPELOOM_CANCELLED = 1,
  PIPELOOM_UNKNOWN = 2,
  PIPELOOM_INVALID_ARGUMENT = 3,
  PIPELOOM_DEADLINE_EXCEEDED = 4,
  PIPELOOM_NOT_FOUND = 5,
  PIPELOOM_ALREADY_EXISTS = 6,
  PIPELOOM_PERMISSION_DENIED = 7,
  PIPELOOM_RESOURCE_EXHAUSTED = 8,
  PIPELOOM_FAILED_PRECONDITION = 9,
  PIPELOOM_ABORTED = 10,
  PIPELOOM_OUT_OF_RANGE = 11,
  PIPELOOM_UNIMPLEMENTED = 12,
  PIPELOOM_INTERNAL = 13,
  PIPELOOM_UNAVAILABLE = 14,
  PIPELOOM_DATA_LOSS = 15,
  PIPELOOM_UNAUTHENTICATED = 16
};

/* The text of the last error of this thread, "" before the first; valid until the thread's next call that fails. */
const char* pipeloom_last_error(void);
/* Inside a callback: the text of the error that it is about to return. */
void pipeloom_set_error(const char* text);

/* ---- Types, tensors, attributes ---------------------------------------------------------------------------------- */

/* Fields and arguments that hold one of several named values are int, so that any other value is an error. */
enum { PIPELOOM_F32 = 0, PIPELOOM_I32 = 1, PIPELOOM_I64 = 2, PIPELOOM_BOOL = 3 };

typedef struct pipeloom_type {
  int dtype;
  int rank; /* 0: a scalar */
  const int64_t* extents;
} pipeloom_type;

/* Dense, row-major, aligned to its element. */
typedef struct pipeloom_tensor {
  pipeloom_type type;
  void* data;
} pipeloom_tensor;

enum {
  PIPELOOM_ATTRIBUTE_BOOL = 0,
  PIPELOOM_ATTRIBUTE_INT = 1,
  PIPELOOM_ATTRIBUTE_DOUBLE = 2,
  PIPELOOM_ATTRIBUTE_STRING = 3,
  PIPELOOM_ATTRIBUTE_INTS = 4
};

typedef struct pipeloom_attribute {
  const char* name; /* a plain word: letters, digits, '_', '.', '+', '-' */
  int kind;
  union {
    int boolean; /* 0 or 1 */
    int64_t integer;
    double real;
    const char* string;
    struct {
      const int64_t* elements;
      size_t count;
    } integers;
  } value;
} pipeloom_attribute;

/* ---- Modules ----------------------------------------------------------------------------------------------------- */

typedef struct pipeloom_module pipeloom_module;
/* Belongs to its module. */
typedef struct pipeloom_graph pipeloom_graph;
/* An input, parameter, constant or result of one graph; 0 is none. */
typedef int64_t pipeloom_value;

typedef struct pipeloom_config {
  int stages;
  int micro_batches;
  const char* schedule; /* gpipe, 1f1b, interleaved; forward without a backward part */
  int threads;          /* compute threads a rank */
  int chunks_per_rank;  /* more than 1 for interleaved */
  int deal_cells;       /* 1: stages are chosen, where no cell has one */
} pipeloom_config;
void pipeloom_config_init(pipeloom_config* config);

int pipeloom_module_create(const pipeloom_config* config, pipeloom_module** module);
/* From its text; its graphs are then whole. */
int pipeloom_module_parse(const char* text, pipeloom_module** module);
/* Also of a null pointer, which does nothing; so are all _destroy functions. */
void pipeloom_module_destroy(pipeloom_module* module);
/* Its text, valid until this module's next pipeloom_module_text. A module with a rule broken prints too, as far as it
 * goes. */
int pipeloom_module_text(pipeloom_module* module, const char** text);

/* The cell and its subtree are on this stage; the longest path wins. */
int pipeloom_module_set_stage(pipeloom_module* module, const char* cell, int stage);

/* The step graph, of one micro-batch: a module that is compiled has one. */
int pipeloom_module_add_graph(pipeloom_module* module, const char* name, pipeloom_graph** graph);
/* What several cells compute alike, for pipeloom_graph_add_call. */
int pipeloom_module_add_block(pipeloom_module* module, const char* name, pipeloom_graph** graph);

/* Names of values are hints: one that is taken gets a suffix, as the text shows. */

#define PIPELOOM_NO_BATCH_AXIS (-1)
/* An input of the step, or of a block (then without batch axis). The type is that of one micro-batch. */
int pipeloom_graph_add_input(pipeloom_graph* graph, const char* hint, const pipeloom_type* type, int batch_axis,
                             pipeloom_value* value);
/* `parameter` is its name in the network; in a block the name of the formal one. Each name once a graph. */
int pipeloom_graph_add_parameter(pipeloom_graph* graph, const char* hint, const char* parameter,
                                 const pipeloom_type* type, int trainable, pipeloom_value* value);
/* All elements of the type, or one that all are equal to. Integers beyond 2^53 and halves of integers are refused when
 * the module is compiled. */
int pipeloom_graph_add_constant(pipeloom_graph* graph, const char* hint, const pipeloom_type* type,
                                const double* elements, size_t num_elements, pipeloom_value* value);

enum { PIPELOOM_FORWARD = 0, PIPELOOM_BACKWARD = 1, PIPELOOM_UPDATE = 2 };
/* How often a node runs: once a micro-batch, once a step; usual is step for an update, micro for all else. */
enum { PIPELOOM_RATE_USUAL = 0, PIPELOOM_RATE_MICRO = 1, PIPELOOM_RATE_STEP = 2 };
#define PIPELOOM_NO_STAGE (-1)

typedef struct pipeloom_node {
  const char* op; /* null in a call */
  const pipeloom_value* operands;
  size_t num_operands;
  const pipeloom_attribute* attributes;
  size_t num_attributes;
  size_t num_results;
  /* Null where the op table infers them. An op that the table lacks is a host op and needs them, unless it has no
   * results; types that contradict the table are refused. */
  const pipeloom_type* result_types;
  const char* const* result_names; /* hints; null, or null for one result: the op's name */
  const char* cell;                /* dotted path; null or "" for none */
  int stage;
  int phase;
  int rate;
} pipeloom_node;
void pipeloom_node_init(pipeloom_node* node);

/* Appends a node: its operands are values of this graph that exist already. `results` gets node->num_results values. */
int pipeloom_graph_add_node(pipeloom_graph* graph, const pipeloom_node* node, pipeloom_value* results);
/* A node that calls a block of the same module, which is whole by then: the operands are the block's inputs, then its
 * parameters; the results its outputs. */
int pipeloom_graph_add_call(pipeloom_graph* graph, const pipeloom_graph* block, const pipeloom_node* node,
                            pipeloom_value* results);
/* `reduce` says how the values of micro-batches make one: "sum", "mean", "concat" along axis 0, "once" for what is made
 * once a step, or "gradient" for a trainable parameter whose gradient is given out, after all others; "" in a block. */
int pipeloom_graph_add_output(pipeloom_graph* graph, pipeloom_value value, const char* reduce);
/* The optimizer of a graph that has a loss and no backward part: both are then added when it is compiled. */
int pipeloom_graph_set_update(pipeloom_graph* graph, const char* op, const pipeloom_attribute* attributes,
                              size_t num_attributes);

/* ---- Programs ---------------------------------------------------------------------------------------------------- */

typedef struct pipeloom_program pipeloom_program;

typedef struct pipeloom_compile_options {
  const char* dump_dir; /* a folder for the graph before and after each pass; null or "" for none */
} pipeloom_compile_options;
void pipeloom_compile_options_init(pipeloom_compile_options* options);

typedef struct pipeloom_parameter {
  const char* name;
  pipeloom_type type;
  int written; /* by an update of that rank */
} pipeloom_parameter;

/* Takes the graphs out of the module, also where it fails: it can then only be destroyed. `options` may be null. */
int pipeloom_compile(pipeloom_module* module, const pipeloom_compile_options* options, pipeloom_program** program);
/* Sessions that have loaded it do not need it any more. */
void pipeloom_program_destroy(pipeloom_program* program);

int pipeloom_program_ranks(const pipeloom_program* program, int* ranks);
/* Types of the whole batch. */
int pipeloom_program_inputs(const pipeloom_program* program, const pipeloom_type** types, size_t* count);
int pipeloom_program_outputs(const pipeloom_program* program, const pipeloom_type** types, size_t* count);
/* The parameters that a rank uses. */
int pipeloom_program_parameters(const pipeloom_program* program, int rank, const pipeloom_parameter** parameters,
                                size_t* count);
/* Null where the rank does not use it. */
int pipeloom_program_find_parameter(const pipeloom_program* program, int rank, const char* name,
                                    const pipeloom_parameter** parameter);

/* ---- Host ops ---------------------------------------------------------------------------------------------------- */

/* A node whose op no kernel of Pipeloom computes, as one micro-batch has it. */
typedef struct pipeloom_host_op {
  const char* op;
  const pipeloom_attribute* attributes; /* by name */
  size_t num_attributes;
  const pipeloom_type* inputs;
  size_t num_inputs;
  const pipeloom_type* outputs;
  size_t num_outputs;
  int threads; /* compute threads that the rank has */
} pipeloom_host_op;

/* How the host computes them. Where ranks are threads they call it at the same time, from threads of their own: `make`
 * while a program is loaded, `run` in steps, `destroy` when the session ends (or the loading failed). One kernel is
 * used by one thread at a time; nodes of one rank that are equal in all that pipeloom_host_op says share one, so it
 * holds no data from one run to the next. Errors are returned as a code, with their text from pipeloom_set_error; an
 * exception must not leave a callback. */
typedef struct pipeloom_host_ops {
  void* user;
  /* `op` lives as long as the call. */
  int (*make)(void* user, const pipeloom_host_op* op, void** kernel);
  /* Dense data, aligned to its element; an input is not written, an output is no input. */
  int (*run)(void* kernel, const void* const* inputs, void* const* outputs);
  void (*destroy)(void* kernel);
} pipeloom_host_ops;

/* ---- World ------------------------------------------------------------------------------------------------------- */

/* What this process is in its run. */
typedef struct pipeloom_world pipeloom_world;

/* Finds out, from the environment that a launcher left, which rank this process is, and meets the others. Once a
 * process. `transport`: "auto" (null), "threads", "mpi" or "shm". Ranks are processes under mpirun with more than one,
 * or where PIPELOOM_RANK, PIPELOOM_WORLD_SIZE and PIPELOOM_RENDEZVOUS ("file:/path", "tcp://host:port") are set.
 * Starts no process, and SIGTERM ends waits from here on where ranks are processes. */
int pipeloom_world_join(const char* transport, int64_t deadline_ms, pipeloom_world** world);
/* has_processes = 0: no launcher has started ranks; they can be threads of this process. */
int pipeloom_world_info(const pipeloom_world* world, int* rank, int* size, int* has_processes);
/* The process's last call but for its own end, when the session is destroyed; the world is gone after it, whatever it
 * returns. `error` is null, or why this rank ends early, which all others are told unless a session has told them;
 * without an error it waits for all ranks to come here where MPI is used. After an error MPI is not finalized, as that
 * would wait for the dead: the process then ends with another exit status than 0. */
int pipeloom_world_end(pipeloom_world* world, const char* error);

/* ---- Sessions ---------------------------------------------------------------------------------------------------- */

typedef struct pipeloom_session pipeloom_session;

typedef struct pipeloom_session_options {
  int64_t deadline_ms;  /* how long any wait for another rank may last before the step fails */
  int output_broadcast; /* 1: where ranks are processes, every one gets all outputs of a step */
  /* name, value, name, value, ...: what must be the same on all ranks that are processes, such as flags. */
  const char* const* configuration;
  size_t num_configuration;   /* of strings */
  pipeloom_host_ops host_ops; /* make null: there are none */
} pipeloom_session_options;
void pipeloom_session_options_init(pipeloom_session_options* options);

/* All ranks as threads of this process. Calls concern all of them. `options` may be null. */
int pipeloom_session_create(int ranks, const pipeloom_session_options* options, pipeloom_session** session);
/* This process's rank; the world has one session. All ranks make the same calls of a session with the same arguments in
 * the same order, and each gives the whole batch; loading, running and reading wait for all ranks, binding and writing
 * do not. The world must outlive the session. */
int pipeloom_session_create_for_rank(pipeloom_world* world, const pipeloom_session_options* options,
                                     pipeloom_session** session);
/* Where ranks are processes, tells the others that this one's session has ended. */
void pipeloom_session_destroy(pipeloom_session* session);

int pipeloom_session_rank(const pipeloom_session* session, int* rank); /* 0 where ranks are threads */
int pipeloom_session_ranks(const pipeloom_session* session, int* ranks);

/* `loaded` is the program's number in this session. Programs of a session share its parameters, which hold zeros until
 * they are written or bound. */
int pipeloom_session_load(pipeloom_session* session, const pipeloom_program* program, int* loaded);
/* What pipeloom_session_run writes here, in order: where ranks are processes, outputs that another one has are of size
 * zero; the scalar ones are everywhere. */
int pipeloom_session_outputs(const pipeloom_session* session, int loaded, const pipeloom_type** types, size_t* count);
/* One step, on inputs of the whole batch. After an error that is not refused before the step a session of threads can
 * only be read, and one of processes only be destroyed. */
int pipeloom_session_run(pipeloom_session* session, int loaded, const pipeloom_tensor* inputs, size_t num_inputs,
                         const pipeloom_tensor* outputs, size_t num_outputs);

/* The copy of the lowest rank that uses it. */
int pipeloom_session_read_parameter(pipeloom_session* session, const char* name, const pipeloom_tensor* value);
/* All copies of this session. */
int pipeloom_session_write_parameter(pipeloom_session* session, const char* name, const pipeloom_tensor* value);

/* From now on the bytes of one rank's copy of a parameter are those at value->data: kernels read and write them in
 * place, and what stands there now is its value. They must live until the parameter is bound again or the session is
 * destroyed, and must not be touched while a call of the session runs. Also before the first program that uses the
 * parameter; binding again holds for all loaded programs from the next run on. A null value->data ends the binding: the
 * session has its own memory again, with the same value. Several ranks may use a parameter, each with a copy of its
 * own: in a session of threads give each of them its memory, with equal values (pipeloom_program_find_parameter says
 * who uses it); `rank` of a process's session is its own. INVALID_ARGUMENT for memory that is not aligned to the
 * element. */
int pipeloom_session_bind_parameter(pipeloom_session* session, int rank, const char* name,
                                    const pipeloom_tensor* value);

/* What the host itself refuses in place of the load that other ranks come to: they all get the error, and unless all
 * refuse alike no later call works. Returns `code`, or what else went wrong. */
int pipeloom_session_refuse(pipeloom_session* session, int code, const char* text);
/* This rank cannot go on: ends the waits of all ranks, now and later, with this text. Another thread may say so while a
 * call of the session runs. */
int pipeloom_session_fail(pipeloom_session* session, int code, const char* text);

/* NOLINTEND(readability-identifier-naming,modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif /* PLUGIN_C_API_PIPELOOM_H_ */
