#include "kernels/transport/shm_rendezvous.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "kernels/base/status_macros.h"
#include "kernels/transport/shm_port.h"
#include "kernels/transport/stop_signal.h"

namespace pipeloom {
namespace {

using Ranks = absl::StatusOr<std::unique_ptr<ShmRanks>>;

absl::Status MissingError(const ShmWorld& world, const std::vector<RankId>& missing) {
  const auto number = [](std::string* text, RankId rank) { absl::StrAppend(text, rank.value()); };
  return absl::DeadlineExceededError(absl::StrFormat(
      "rank %d waited %.3f seconds at %s for %s %s of %d; see that every rank was started, on this host and with the "
      "same rendezvous, or allow a longer start",
      world.rank.value(), std::chrono::duration<double>(world.start_deadline).count(), world.rendezvous,
      missing.size() == 1 ? "rank" : "ranks", absl::StrJoin(missing, ", ", number), world.size));
}

absl::Status StopError(const ShmWorld& world) {
  return absl::AbortedError(absl::StrCat("rank ", world.rank.value(), " waited at ", world.rendezvous,
                                         " when the launcher ended this process with SIGTERM; see which rank died "
                                         "first"));
}

// Until all ranks have come, or one fails; `serve` is called again and again meanwhile. After a failure the place stays
// for a little while, so that ranks that come later learn of it too.
absl::Status WaitForAll(ShmRanks& ranks, const ShmWorld& world, Deadline deadline, absl::FunctionRef<void()> serve) {
  constexpr std::chrono::milliseconds kLookAtProcesses(100);
  constexpr std::chrono::seconds kTellLateRanks(2);
  Deadline next_look = Deadline::clock::now() + kLookAtProcesses;
  Deadline leave = Deadline::max();
  while (true) {
    serve();
    if (ranks.IsComplete()) return absl::OkStatus();  // a rank that is ahead may have failed: its own affair, later
    const std::vector<RankId> missing = ranks.Missing();
    const Deadline now = Deadline::clock::now();
    if (ranks.failed()) {
      const absl::Status failure = ranks.failure().status();
      leave = std::min(leave, absl::IsDeadlineExceeded(failure) || StopRequested() ? now : now + kTellLateRanks);
      if (missing.empty() || now >= leave) return failure;
    } else if (StopRequested()) {
      ranks.Fail(StopError(world));
    } else if (now >= deadline) {
      ranks.Fail(MissingError(world, missing));
    } else if (now >= next_look) {
      ranks.CheckAlive();
      next_look = now + kLookAtProcesses;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

Ranks CreateAndJoin(const ShmWorld& world, Deadline deadline) {
  ASSIGN_OR_RETURN(std::unique_ptr<ShmRanks> ranks, ShmRanks::Create(world.size));
  RETURN_IF_ERROR(ranks->Join(world.rank, world.size, deadline));
  return ranks;
}

// NotFound where `address` is none, or that of a world that nobody can join any more.
Ranks AttachAndJoin(const std::string& address, const ShmWorld& world, Deadline deadline) {
  ASSIGN_OR_RETURN(const ArenaAddress parsed, ArenaAddress::FromText(address));
  ASSIGN_OR_RETURN(std::unique_ptr<ShmRanks> ranks, ShmRanks::Attach(parsed));
  RETURN_IF_ERROR(ranks->Join(world.rank, world.size, deadline));
  return ranks;
}

struct LockedFile {
  UniqueFd file;
  FileLock lock;
};

// The file at `path`, made if there is none. One that another rank removed while this one waited for it is let go.
absl::StatusOr<LockedFile> OpenLocked(const std::string& path, Deadline deadline) {
  const std::string what = absl::StrCat("rendezvous file ", path);
  while (true) {
    UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (file.get() < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", what));
    ASSIGN_OR_RETURN(FileLock lock, FileLock::Take(file.get(), what, deadline));
    struct stat mine = {}, named = {};
    if (fstat(file.get(), &mine) == 0 && stat(path.c_str(), &named) == 0 && mine.st_dev == named.st_dev &&
        mine.st_ino == named.st_ino) {
      return LockedFile{std::move(file), std::move(lock)};
    }
  }
}

std::string ReadText(const UniqueFd& file) {
  char text[1024];
  const ssize_t bytes = pread(file.get(), text, sizeof(text), 0);
  return std::string(text, static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
}

absl::Status WriteText(const UniqueFd& file, const std::string& text, const std::string& path) {
  if (ftruncate(file.get(), 0) == 0 &&
      pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write rendezvous file ", path));
}

// Under the file's lock a rank joins the world whose address is there, or leaves that of a new one; the last to come
// removes the file, so that it is there only while ranks gather.
Ranks JoinAtFile(const std::string& path, const ShmWorld& world, Deadline deadline) {
  ASSIGN_OR_RETURN(const LockedFile locked, OpenLocked(path, deadline));
  Ranks ranks = AttachAndJoin(ReadText(locked.file), world, deadline);
  const bool is_new = absl::IsNotFound(ranks.status());
  if (is_new) ranks = CreateAndJoin(world, deadline);
  RETURN_IF_ERROR(ranks.status());
  if ((*ranks)->IsComplete()) {
    unlink(path.c_str());
  } else if (is_new) {
    RETURN_IF_ERROR(WriteText(locked.file, (*ranks)->arena().address().ToText(), path));
  }
  return ranks;
}

Ranks MeetAtFile(const std::string& path, const ShmWorld& world, Deadline deadline) {
  ASSIGN_OR_RETURN(std::unique_ptr<ShmRanks> ranks, JoinAtFile(path, world, deadline));
  RETURN_IF_ERROR(WaitForAll(*ranks, world, deadline, [] {}));
  return ranks;
}

absl::Status WrongAnswerError(const ShmWorld& world, absl::string_view answer) {
  return absl::FailedPreconditionError(absl::StrCat(
      "rank ", world.rank.value(), ": what listens at ", world.rendezvous, " does not answer as rank 0 does: ", answer,
      "; if it is another program, end it or give all ranks another port; if it is rank 0, see what keeps it"));
}

// Where to find the world. Unavailable where it may be there later.
absl::StatusOr<std::string> AskAtPort(const Port& port, const ShmWorld& world, Deadline deadline) {
  absl::StatusOr<std::string> address = Ask(port, deadline);
  if (absl::IsDeadlineExceeded(address.status())) return WrongAnswerError(world, address.status().message());
  if (address.ok() && !ArenaAddress::FromText(*address).ok()) {
    return WrongAnswerError(world, absl::StrCat("'", absl::CHexEscape(address->substr(0, 80)), "'"));
  }
  return address;
}

Ranks ServeAtPort(const UniqueFd& listener, const ShmWorld& world, Deadline deadline) {
  ASSIGN_OR_RETURN(std::unique_ptr<ShmRanks> ranks, CreateAndJoin(world, deadline));
  const std::string address = ranks->arena().address().ToText();
  RETURN_IF_ERROR(WaitForAll(*ranks, world, deadline, [&] { AnswerAll(listener, address); }));
  return ranks;
}

// Rank 0 makes the world and tells its address to all who ask, until all have come. A rank 0 that finds the port taken
// asks too: if a rank 0 listens there, all learn that it was started twice.
Ranks MeetAtPort(const Port& port, const ShmWorld& world, Deadline deadline) {
  while (true) {
    absl::StatusOr<UniqueFd> listener = absl::AlreadyExistsError("rank 0 listens");
    if (world.rank == RankId(0)) listener = Listen(port);
    if (listener.ok()) return ServeAtPort(*listener, world, deadline);
    const bool is_taken = absl::IsAlreadyExists(listener.status());
    const absl::StatusOr<std::string> address = is_taken ? AskAtPort(port, world, deadline) : listener.status();
    Ranks ranks = address.ok() ? AttachAndJoin(*address, world, deadline) : address.status();
    if (ranks.ok()) {
      RETURN_IF_ERROR(WaitForAll(**ranks, world, deadline, [] {}));
      return ranks;
    }
    const bool may_come = address.ok() ? absl::IsNotFound(ranks.status()) : absl::IsUnavailable(address.status());
    if (!may_come) return ranks.status();
    if (StopRequested()) return StopError(world);
    if (Deadline::clock::now() >= deadline) {
      if (world.rank == RankId(0)) return is_taken ? WrongAnswerError(world, ranks.status().message()) : ranks.status();
      return Annotate(MissingError(world, {RankId(0)}), ranks.status().message());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

absl::Status CheckWorld(const ShmWorld& world) {
  if (world.size >= 1 && world.rank.value() >= 0 && world.rank.value() < world.size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("rank ", world.rank.value(), " of ", world.size,
                                                 " ranks; give 1 or more ranks, and one of 0 to their number - 1"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShmRanks>> MeetRanks(const ShmWorld& world) {
  RETURN_IF_ERROR(CheckWorld(world));
  const Deadline deadline = Deadline::clock::now() + world.start_deadline;
  absl::string_view place = world.rendezvous;
  if (absl::ConsumePrefix(&place, "file:")) return MeetAtFile(std::string(place), world, deadline);
  if (absl::ConsumePrefix(&place, "tcp://")) {
    ASSIGN_OR_RETURN(const Port port, Port::FromText(place));
    return MeetAtPort(port, world, deadline);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "rendezvous '", world.rendezvous, "' is no place to meet; give file:/path/of/a/file or tcp://host:port"));
}

}  // namespace pipeloom
