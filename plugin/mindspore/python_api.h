#ifndef PLUGIN_MINDSPORE_PYTHON_API_H_
#define PLUGIN_MINDSPORE_PYTHON_API_H_

#include <cstdint>

// What the Python package calls in this library, by ctypes. Each returns null, or what went wrong, as text that lives
// until the thread's next call.
extern "C" {

// Sets an option for graphs that are built from now on: stages, schedule, threads, output_broadcast (0 or 1), deadline
// (seconds), dump_dir, dataset_strategy, gradients_mean.
const char* pipeloom_mindspore_set(const char* key, const char* value);

// This process's rank among those that a launcher has started; 0 of 1 where none has. The first call meets the others.
const char* pipeloom_mindspore_world(int* rank, int* size);

// Ends this process's part in the run: its last call. `failure` is null, or why the script ended early, which all other
// ranks are told.
const char* pipeloom_mindspore_end(const char* failure);

// 1 where a program of this process uses the network's parameter, 0 where only other ranks do, -1 where none is built.
int pipeloom_mindspore_owns(const char* parameter);

// Writes the value of a parameter, of its lowest rank, to `data` on `to_rank`, or on every rank for -1. All ranks call
// it for the same parameters in the same order.
const char* pipeloom_mindspore_gather(const char* parameter, void* data, int64_t bytes, int to_rank);

}  // extern "C"

#endif  // PLUGIN_MINDSPORE_PYTHON_API_H_
