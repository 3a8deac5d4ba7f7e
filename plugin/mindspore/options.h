#ifndef PLUGIN_MINDSPORE_OPTIONS_H_
#define PLUGIN_MINDSPORE_OPTIONS_H_

#include <cstdint>
#include <string>

namespace pipeloom::ms {

// What the Python package has set for graphs that are built from now on; see pipeloom_mindspore_set.
struct Options {
  int stages = 1;
  std::string schedule;  // "": 1f1b for what trains, forward for what does not
  int threads = 1;
  bool output_broadcast = false;
  int64_t deadline_ms = 300000;
  std::string dump_dir;
};

Options CurrentOptions();

}  // namespace pipeloom::ms

#endif  // PLUGIN_MINDSPORE_OPTIONS_H_
