#include "plugin/c_api/world.h"

#include <memory>
#include <utility>

#include "kernels/base/status_macros.h"
#include "plugin/c_api/guard.h"

using pipeloom::c_api::Guard;
using pipeloom::c_api::NotNull;

extern "C" {

int pipeloom_world_join(const char* transport, int64_t deadline_ms, pipeloom_world** world) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(world, "the place for the world"));
    pipeloom::LaunchOptions options;
    if (transport != nullptr) options.transport = transport;
    options.deadline = std::chrono::milliseconds(deadline_ms);
    auto joined = std::make_unique<pipeloom_world>();
    RETURN_IF_ERROR(pipeloom::JoinStartedWorld(options, &joined->world));
    *world = joined.release();
    return absl::OkStatus();
  });
}

int pipeloom_world_info(const pipeloom_world* world, int* rank, int* size, int* has_processes) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(world, "the world"));
    if (rank != nullptr) *rank = world->world.rank.value();
    if (size != nullptr) *size = world->world.size;
    if (has_processes != nullptr) *has_processes = world->world.has_processes ? 1 : 0;
    return absl::OkStatus();
  });
}

int pipeloom_world_end(pipeloom_world* world, const char* error) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(world, "the world"));
    const std::unique_ptr<pipeloom_world> ended(world);
    return pipeloom::LeaveWorld(error == nullptr ? absl::OkStatus() : absl::AbortedError(error), ended->world);
  });
}

}  // extern "C"
