// Which flag and which environment make ranks what; the environments are made up.
#include "plugin/launch/placement.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipeloom {
namespace {

using Environment = std::map<std::string, std::string>;
using testing::HasSubstr;

absl::StatusOr<Placement> Place(const std::string& transport, const Environment& environment) {
  return PlaceRanks(transport, [&](const char* name) -> const char* {
    const auto variable = environment.find(name);
    return variable == environment.end() ? nullptr : variable->second.c_str();
  });
}

Environment Mpirun(int rank, int size, int on_this_host) {
  return {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_SIZE", std::to_string(size)},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(on_this_host)},
          {"PMIX_SERVER_TMPDIR", "/tmp/ompi.host.0/pid.17"}};
}

Environment Own(const std::string& rank, const std::string& size) {
  return {{"PIPELOOM_RANK", rank}, {"PIPELOOM_WORLD_SIZE", size}, {"PIPELOOM_RENDEZVOUS", "tcp://localhost:4711"}};
}

void ExpectKind(const std::string& transport, const Environment& environment, Placement::Kind kind) {
  const absl::StatusOr<Placement> placement = Place(transport, environment);
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(static_cast<int>(placement->kind), static_cast<int>(kind)) << transport;
}

void ExpectError(const std::string& transport, const Environment& environment, const std::string& message) {
  const absl::StatusOr<Placement> placement = Place(transport, environment);
  ASSERT_FALSE(placement.ok()) << transport;
  EXPECT_THAT(std::string(placement.status().message()), HasSubstr(message));
}

TEST(Placement, WithoutALauncher) {
  ExpectKind("auto", {}, Placement::Kind::kThreads);
  ExpectKind("threads", {}, Placement::Kind::kThreads);
  ExpectKind("mpi", {}, Placement::Kind::kRestart);
  ExpectKind("shm", {}, Placement::Kind::kRestart);
  ExpectError("tcp", {}, "--transport=tcp is unknown; choose one of auto, threads, mpi, shm");
  // A mpirun that gives no rank must not start programs for ever.
  ExpectError("mpi", {{kRestartedVariable, "1"}}, "the mpirun of Open MPI 4 is needed");
}

TEST(Placement, UnderMpirun) {
  ExpectKind("auto", Mpirun(0, 1, 1), Placement::Kind::kThreads);
  ExpectKind("auto", Mpirun(1, 4, 4), Placement::Kind::kShm);
  ExpectKind("auto", Mpirun(1, 4, 2), Placement::Kind::kMpi);
  ExpectKind("mpi", Mpirun(0, 1, 1), Placement::Kind::kMpi);
  ExpectKind("mpi", Mpirun(1, 4, 4), Placement::Kind::kMpi);
  ExpectKind("shm", Mpirun(0, 1, 1), Placement::Kind::kShm);
  ExpectKind("threads", Mpirun(0, 1, 1), Placement::Kind::kThreads);
  ExpectError("threads", Mpirun(1, 4, 4), "--transport=threads runs all stages in one process, but 4 were started");
  ExpectError("shm", Mpirun(1, 4, 2), "--transport=shm is for ranks of one host; use --transport=mpi");
  const absl::StatusOr<Placement> placement = Place("shm", Mpirun(1, 4, 4));
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->rank, 1);
  EXPECT_EQ(placement->size, 4);
  EXPECT_EQ(placement->rendezvous, "file:/tmp/ompi.host.0/pid.17/pipeloom");
  EXPECT_TRUE(placement->by_mpirun);
  EXPECT_TRUE(Place("mpi", Mpirun(1, 4, 4))->by_mpirun);
}

TEST(Placement, UnderAnotherLauncher) {
  for (const char* transport : {"auto", "shm"}) {
    ExpectKind(transport, Own("1", "2"), Placement::Kind::kShm);
    const absl::StatusOr<Placement> placement = Place(transport, Own("1", "2"));
    ASSERT_TRUE(placement.ok());
    EXPECT_EQ(placement->rank, 1);
    EXPECT_EQ(placement->size, 2);
    EXPECT_EQ(placement->rendezvous, "tcp://localhost:4711");
    EXPECT_FALSE(placement->by_mpirun);  // a launcher may end before its ranks
  }
  ExpectKind("auto", Own("0", "1"), Placement::Kind::kThreads);
  ExpectError("mpi", Own("1", "2"), "--transport=mpi needs mpirun, but PIPELOOM_RANK is set");
  ExpectError("threads", Own("1", "2"), "but 2 were started");
  ExpectError("auto", Own("2", "2"), "PIPELOOM_RANK=2 is not one of the PIPELOOM_WORLD_SIZE=2 ranks; give 0 to 1");
  ExpectError("auto", Own("0", "0"), "PIPELOOM_WORLD_SIZE=0 has no rank; give at least 1");
  ExpectError("auto", Own("one", "2"), "PIPELOOM_RANK=one is no number from 0 on");
  ExpectError("auto", Own("-1", "2"), "PIPELOOM_RANK=-1 is no number from 0 on");
  for (const char* missing : {"PIPELOOM_RANK", "PIPELOOM_WORLD_SIZE", "PIPELOOM_RENDEZVOUS"}) {
    Environment environment = Own("1", "2");
    environment.erase(missing);
    ExpectError("auto", environment, std::string(missing) + " is not set");
  }
}

}  // namespace
}  // namespace pipeloom
