#include "plugin/launch/placement.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"

namespace pipeloom {
namespace {

constexpr char kRank[] = "PIPELOOM_RANK";
constexpr char kSize[] = "PIPELOOM_WORLD_SIZE";
constexpr char kRendezvous[] = "PIPELOOM_RENDEZVOUS";

absl::StatusOr<int> NumberIn(const char* name, GetVariable get) {
  const char* value = get(name);
  if (value == nullptr) return absl::InvalidArgumentError(absl::StrCat(name, " is not set"));
  int number = 0;
  if (absl::SimpleAtoi(value, &number) && number >= 0) return number;
  return absl::InvalidArgumentError(absl::StrCat(name, "=", value, " is no number from 0 on"));
}

// What mpirun says of this process.
struct MpirunRank {
  int rank = 0;
  int size = 0;  // 0: mpirun did not start it
  bool on_one_host = false;
  std::string folder;  // of this run, which mpirun removes at its end; "" if it has none
};

absl::StatusOr<MpirunRank> ReadMpirun(GetVariable get) {
  MpirunRank mpirun;
  if (get("OMPI_COMM_WORLD_SIZE") == nullptr) return mpirun;
  ASSIGN_OR_RETURN(mpirun.size, NumberIn("OMPI_COMM_WORLD_SIZE", get));
  ASSIGN_OR_RETURN(mpirun.rank, NumberIn("OMPI_COMM_WORLD_RANK", get));
  ASSIGN_OR_RETURN(const int on_this_host, NumberIn("OMPI_COMM_WORLD_LOCAL_SIZE", get));
  mpirun.on_one_host = on_this_host == mpirun.size;
  const char* folder = get("PMIX_SERVER_TMPDIR");
  if (folder != nullptr) mpirun.folder = folder;
  return mpirun;
}

bool HasRankOfOurOwn(GetVariable get) {
  return get(kRank) != nullptr || get(kSize) != nullptr || get(kRendezvous) != nullptr;
}

absl::StatusOr<Placement> ReadOwnVariables(GetVariable get) {
  Placement placement;
  placement.kind = Placement::Kind::kShm;
  ASSIGN_OR_RETURN(placement.rank, NumberIn(kRank, get));
  ASSIGN_OR_RETURN(placement.size, NumberIn(kSize, get));
  if (placement.size < 1) return absl::InvalidArgumentError(absl::StrCat(kSize, "=0 has no rank; give at least 1"));
  if (placement.rank >= placement.size) {
    return absl::InvalidArgumentError(absl::StrCat(kRank, "=", placement.rank, " is not one of the ", kSize, "=",
                                                   placement.size, " ranks; give 0 to ", placement.size - 1));
  }
  if (get(kRendezvous) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(kRendezvous, " is not set; give file:/path or tcp://host:port, the same to all ranks"));
  }
  placement.rendezvous = get(kRendezvous);
  return placement;
}

absl::StatusOr<Placement> UnderMpirun(absl::string_view transport, const MpirunRank& mpirun) {
  Placement placement;
  placement.by_mpirun = true;
  const bool can_share = mpirun.on_one_host && !mpirun.folder.empty();
  placement.kind =
      transport == "mpi" || (transport == "auto" && !can_share) ? Placement::Kind::kMpi : Placement::Kind::kShm;
  if (placement.kind == Placement::Kind::kMpi) return placement;
  if (!can_share) {
    return absl::InvalidArgumentError(absl::StrCat("--transport=shm is for ranks of one host",
                                                   mpirun.on_one_host ? " with a folder from mpirun" : "",
                                                   "; use --transport=mpi"));
  }
  placement.rank = mpirun.rank;
  placement.size = mpirun.size;
  placement.rendezvous = absl::StrCat("file:", mpirun.folder, "/pipeloom");
  return placement;
}

}  // namespace

absl::StatusOr<Placement> PlaceRanks(absl::string_view transport, GetVariable get) {
  if (transport != "auto" && transport != "threads" && transport != "mpi" && transport != "shm") {
    return absl::InvalidArgumentError(
        absl::StrCat("--transport=", transport, " is unknown; choose one of auto, threads, mpi, shm"));
  }
  ASSIGN_OR_RETURN(const MpirunRank mpirun, ReadMpirun(get));
  const bool has_own = HasRankOfOurOwn(get);
  Placement own;
  if (has_own) {
    ASSIGN_OR_RETURN(own, ReadOwnVariables(get));
  }
  const int processes = has_own ? own.size : mpirun.size;
  if (transport == "threads") {
    if (processes <= 1) return Placement();
    return absl::InvalidArgumentError(absl::StrCat("--transport=threads runs all stages in one process, but ",
                                                   processes, " were started; start one, or use --transport=auto"));
  }
  if (transport == "auto" && processes <= 1) return Placement();
  if (has_own && transport == "mpi") {
    return absl::InvalidArgumentError(
        absl::StrCat("--transport=mpi needs mpirun, but ", kRank, " is set; use --transport=shm or unset it"));
  }
  if (has_own) return own;
  if (mpirun.size > 0) return UnderMpirun(transport, mpirun);
  Placement restart;
  restart.kind = Placement::Kind::kRestart;
  if (get(kRestartedVariable) == nullptr) return restart;
  return absl::FailedPreconditionError("mpirun did not say which rank this is; the mpirun of Open MPI 4 is needed");
}

}  // namespace pipeloom
