#include "plugin/launch/launch.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "kernels/transport/mpi.h"
#include "kernels/transport/shm.h"
#include "kernels/transport/stop_signal.h"
#include "plugin/launch/placement.h"

namespace pipeloom {
namespace {

// Becomes mpirun of this program; returns only where that cannot be.
absl::Status RestartUnderMpirun(int argc, char** argv, const LaunchOptions& options) {
  if (options.stages < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--transport=", options.transport,
                                                   " starts a process a stage, but --stages=", options.stages,
                                                   "; give at least 1"));
  }
  std::vector<std::string> command = {"mpirun", "-n", absl::StrCat(options.stages),
                                      "--oversubscribe",  // there may be fewer cores than ranks
                                      "--bind-to",
                                      "none",  // a rank may have several compute threads
                                      // How long ranks have to say where they were, in seconds, when one has failed.
                                      "--mca", "odls_base_sigkill_timeout", "5"};
  if (geteuid() == 0) command.emplace_back("--allow-run-as-root");
  command.emplace_back("/proc/self/exe");
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof(program));
  if (length > 0 && length < static_cast<ssize_t>(sizeof(program))) {
    command.back().assign(program, static_cast<size_t>(length));
  }
  command.insert(command.end(), argv + 1, argv + argc);
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  setenv(kRestartedVariable, "1", /*overwrite=*/1);
  execvp(arguments[0], arguments.data());
  if (errno == ENOENT) {
    return absl::NotFoundError(absl::StrCat("--transport=", options.transport,
                                            " starts this program again under mpirun, which is not there; install Open "
                                            "MPI (openmpi-bin), or use --transport=threads"));
  }
  return absl::ErrnoToStatus(errno, "cannot start mpirun");
}

absl::StatusOr<Placement> Place(const LaunchOptions& options) {
  return PlaceRanks(options.transport, [](const char* name) -> const char* { return std::getenv(name); });
}

// Meets the other processes, where there are some.
absl::Status Join(const Placement& placement, const LaunchOptions& options, World* world) {
  world->deadline = options.deadline;
  if (placement.kind == Placement::Kind::kThreads) return absl::OkStatus();
  EndWaitsOnSigterm();  // before the first wait
  // Ranks over shared memory have nothing else that would tell them that mpirun is gone.
  if (placement.by_mpirun) prctl(PR_SET_PDEATHSIG, SIGTERM);
  world->has_processes = true;
  if (placement.kind == Placement::Kind::kShm) {
    world->rank = RankId(placement.rank);
    world->size = placement.size;
    ASSIGN_OR_RETURN(world->transport, MakeShmTransport({RankId(placement.rank), placement.size, placement.rendezvous,
                                                         options.deadline}));
    return absl::OkStatus();
  }
  world->over_mpi = true;
  ASSIGN_OR_RETURN(world->transport, MakeMpiTransport(options.deadline));
  world->rank = world->transport->rank();
  world->size = world->transport->size();
  return absl::OkStatus();
}

// Tells the other ranks an error that no session has told them. Before MPI ends.
void CloseTransport(const absl::Status& status, World& world) {
  if (!status.ok() && world.transport != nullptr) world.transport->Fail(status);
  world.transport.reset();
}

}  // namespace

absl::Status JoinWorld(int argc, char** argv, const LaunchOptions& options, World* world) {
  ASSIGN_OR_RETURN(const Placement placement, Place(options));
  if (placement.kind == Placement::Kind::kRestart) return RestartUnderMpirun(argc, argv, options);
  return Join(placement, options, world);
}

absl::Status JoinStartedWorld(const LaunchOptions& options, World* world) {
  ASSIGN_OR_RETURN(const Placement placement, Place(options));
  if (placement.kind != Placement::Kind::kRestart) return Join(placement, options, world);
  return absl::FailedPreconditionError(absl::StrCat(
      "transport ", options.transport, " is for ranks that a launcher started, and none did; start this process with ",
      "mpirun, or set PIPELOOM_RANK, PIPELOOM_WORLD_SIZE and PIPELOOM_RENDEZVOUS, or use threads"));
}

absl::Status LeaveWorld(const absl::Status& status, World& world) {
  CloseTransport(status, world);
  if (!world.over_mpi) return absl::OkStatus();
  if (status.ok()) return FinalizeMpi(world.deadline);
  SayLastWordsToMpi(1);
  return absl::OkStatus();
}

int EndRank(absl::Status status, const std::string& program, World& world) {
  const std::string of_rank = world.size > 1 ? absl::StrCat("rank ", world.rank.value(), ": ") : "";
  CloseTransport(Annotate(status, absl::StrCat(of_rank, program)), world);
  if (status.ok() && world.over_mpi) status = FinalizeMpi(world.deadline);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s%s\n", program.c_str(), of_rank.c_str(), std::string(status.message()).c_str());
  if (world.over_mpi) LeaveMpi(1);
  return 1;
}

}  // namespace pipeloom
