// One rank of mpi_end_test.py: hands messages round a ring until what the argument says happens to rank 1.
//
//   nothing   all ranks end well after 100 messages
//   fails     it fails after 100 messages
//   stops     it stops itself (SIGSTOP) after 100 messages
//   late      it stops itself before it has started
//   leaves    it comes to its end after 100 messages, while the others want more

#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "kernels/base/status_macros.h"
#include "kernels/transport/mpi.h"

namespace pipeloom {
namespace {

constexpr std::chrono::seconds kWait(5);
constexpr int64_t kEvent = 100;  // messages

absl::Status Ring(Transport& transport, const std::string& event) {
  const int rank = transport.rank().value(), size = transport.size();
  const ChannelSpec to = {RankId(rank), RankId((rank + 1) % size), ChannelTag(0), "h", 20000, 2};
  const ChannelSpec from = {RankId((rank + size - 1) % size), RankId(rank), ChannelTag(0), "h", 20000, 2};
  ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(to));
  ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(from));
  for (int64_t k = 0;; ++k) {
    const bool all_end = event == "nothing";
    if (k == kEvent && (all_end || rank == 1)) {
      if (event == "fails") return absl::DataLossError("rank 1: label 12 is out of range");
      if (event == "stops") raise(SIGSTOP);
      if (all_end || event == "leaves") return absl::OkStatus();
    }
    const Deadline deadline = Deadline::clock::now() + kWait;
    RETURN_IF_ERROR(send->Acquire(k, deadline));
    send->Send(k);
    RETURN_IF_ERROR(receive->Receive(k, deadline));
    receive->Release(k);
  }
}

int Main(const std::string& event) {
  // Before MPI knows the rank, mpirun does.
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  PIPELOOM_CHECK(rank != nullptr, "mpirun starts this");
  if (event == "late" && std::string(rank) == "1") raise(SIGSTOP);
  absl::Status status;
  {
    auto transport = MakeMpiTransport(kWait);
    status = transport.status();
    if (status.ok()) {
      status = Ring(**transport, event);
      if (!status.ok()) (*transport)->Fail(status);
    }
  }
  if (status.ok()) status = FinalizeMpi(kWait);
  std::cout << "rank " << rank << " ends with " << status << std::endl;
  if (!status.ok()) LeaveMpi(3);
  status = MakeMpiTransport(kWait).status();
  std::cout << "rank " << rank << " cannot start again: " << status << std::endl;
  return 0;
}

}  // namespace
}  // namespace pipeloom

int main(int, char** argv) { return pipeloom::Main(argv[1]); }
