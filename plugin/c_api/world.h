#ifndef PLUGIN_C_API_WORLD_H_
#define PLUGIN_C_API_WORLD_H_

#include "plugin/c_api/pipeloom.h"
#include "plugin/launch/launch.h"

// NOLINTNEXTLINE(readability-identifier-naming): a name of C.
struct pipeloom_world {
  pipeloom::World world;
};

#endif  // PLUGIN_C_API_WORLD_H_
