#include "kernels/transport/mpi_engine.h"

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "kernels/transport/mpi_process.h"
#include "kernels/transport/mpi_status.h"

namespace pipeloom {
namespace {

// What MPI may read or write until the process ends, even after the last end of a channel. It stays reachable, since a
// checker of leaks cannot know whose it is.
std::vector<std::shared_ptr<void>>& MemoryOfMpi() {
  static auto* const memory = new std::vector<std::shared_ptr<void>>;
  return *memory;
}

}  // namespace

absl::StatusOr<std::shared_ptr<MpiEngine>> MpiEngine::Make(Deadline deadline) {
  RETURN_IF_ERROR(InitMpi(deadline));
  RETURN_IF_ERROR(MeetAllRanks(deadline));
  int rank = 0, size = 0, has_tag = 0;
  int* largest_tag = nullptr;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &has_tag);
  PIPELOOM_CHECK(has_tag != 0, "MPI_COMM_WORLD has MPI_TAG_UB");
  std::shared_ptr<MpiEngine> engine(new MpiEngine(RankId(rank), size, *largest_tag));
  ASSIGN_OR_RETURN(engine->data_, DuplicateWorld(deadline));
  ASSIGN_OR_RETURN(engine->credits_, DuplicateWorld(deadline));
  // One of its own, since its receive from any rank would slow down the matching of others.
  ASSIGN_OR_RETURN(MPI_Comm failures, DuplicateWorld(deadline));
  engine->failure_ = std::make_unique<MpiFailure>(engine->rank_, size, engine->requests_);
  RETURN_IF_ERROR(engine->failure_->Open(failures));
  return engine;
}

MpiEngine::~MpiEngine() {
  if (requests_.Close()) return;
  // A rank is done when the others' messages are there; its own may be under way.
  for (std::unique_ptr<MpiChannel>& channel : channels_) MemoryOfMpi().push_back(std::move(channel));
  MemoryOfMpi().push_back(std::move(failure_));
}

absl::Status MpiEngine::CheckOpen(const ChannelSpec& spec, ChannelEnd end) {
  RETURN_IF_ERROR(CheckChannelEnd(spec, end, rank_, size_));
  if (spec.tag.value() < 0 || spec.tag.value() > largest_tag_) {
    return absl::InvalidArgumentError(
        absl::StrCat(ChannelToString(spec), ": this MPI has the tags 0 to ", largest_tag_, "; number channels from 0"));
  }
  if (!opened_.insert(std::make_tuple(spec.source, spec.destination, spec.tag, end)).second) {
    return OpenedTwiceError(spec, end);
  }
  return absl::OkStatus();
}

MpiChannelContext MpiEngine::Context() { return {data_, credits_, requests_, *failure_}; }

absl::StatusOr<MpiSendChannel*> MpiEngine::OpenSend(const ChannelSpec& spec) {
  RETURN_IF_ERROR(CheckOpen(spec, ChannelEnd::kSend));
  auto channel = std::make_unique<MpiSendChannel>(spec, Context());
  MpiSendChannel* const opened = channel.get();
  channels_.push_back(std::move(channel));
  RETURN_IF_ERROR(opened->Open());
  return opened;
}

absl::StatusOr<MpiReceiveChannel*> MpiEngine::OpenReceive(const ChannelSpec& spec) {
  RETURN_IF_ERROR(CheckOpen(spec, ChannelEnd::kReceive));
  auto channel = std::make_unique<MpiReceiveChannel>(spec, Context());
  MpiReceiveChannel* const opened = channel.get();
  channels_.push_back(std::move(channel));
  RETURN_IF_ERROR(opened->Open());
  return opened;
}

void MpiEngine::Progress() {
  const int code = requests_.Test();
  if (code != MPI_SUCCESS) {
    failure_->Report(MpiStatus(code, absl::StrCat("rank ", rank_.value(), ": messages cannot be tested")));
  }
  failure_->Drive();
}

void MpiEngine::Fail(const absl::Status& status) {
  failure_->Report(status);
  // MPI is for the rank's own thread alone. From another one, the next wait or Progress takes it up.
  if (std::this_thread::get_id() == thread_) Settle();
}

void MpiEngine::Settle() {
  while (failure_->undecided()) {
    Progress();
    std::this_thread::yield();
  }
}

}  // namespace pipeloom
