// Shared memory between processes: what the conformance suite, whose ranks are threads, cannot see.

#include <dlfcn.h>
#include <netdb.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/status_macros.h"
#include "kernels/transport/shm.h"
#include "kernels/transport/stop_signal.h"
#include "tests/transport/rank_process.h"

// Lookups of this process, or one that it forks, that find the name server out of reach.
static int lookups_that_fail = 0;

// Stands before the C library's.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** list) {
  if (lookups_that_fail-- > 0) return EAI_AGAIN;
  static const auto library = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return library(host, service, hints, list);
}

namespace pipeloom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr seconds kPromptly(10);  // as the project asks of a death, on a loaded machine too

Deadline Soon() { return steady_clock::now() + seconds(60); }

// Sees every name that comes into /dev/shm, however short its life.
class NamesInDevShm {
 public:
  NamesInDevShm() : fd_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(inotify_add_watch(fd_, "/dev/shm", IN_CREATE | IN_MOVED_TO), 0);
  }
  ~NamesInDevShm() { close(fd_); }

  // Those since the last call that have the number of one of these processes; the machine has other users.
  std::set<std::string> Of(const std::vector<pid_t>& pids) {
    std::set<std::string> names;
    alignas(inotify_event) char events[4096];
    for (ssize_t bytes; (bytes = read(fd_, events, sizeof(events))) > 0;) {
      for (ssize_t at = 0; at < bytes;) {
        const auto* event = reinterpret_cast<const inotify_event*>(events + at);
        const std::string name = event->len > 0 ? event->name : "";
        for (pid_t pid : pids) {
          if (absl::StrContains(name, absl::StrCat(pid))) names.insert(name);
        }
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
    return names;
  }

 private:
  const int fd_;
};

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Another program's socket, at a port that was free; it listens.
class OtherListener {
 public:
  OtherListener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    listen(fd_, 16);  // an unbound socket is bound to a free port
  }
  ~OtherListener() { close(fd_); }

  std::string port() const {
    sockaddr_storage address = {};
    socklen_t bytes = sizeof(address);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &bytes);
    unsigned char* port = reinterpret_cast<unsigned char*>(&address) + sizeof(sa_family_t);
    return absl::StrCat(port[0] * 256 + port[1]);
  }
  // To the next `callers` programs that connect.
  void Say(const std::string& text, int callers) const {
    for (int i = 0; i < callers; ++i) {
      const int caller = accept(fd_, nullptr, nullptr);
      EXPECT_EQ(send(caller, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
      close(caller);
    }
  }

 private:
  const int fd_;
};

// A port that was free a moment ago.
std::string FreePort() { return OtherListener().port(); }

ChannelSpec Spec(int source, int destination, int64_t bytes, int slots = 2) {
  return {RankId(source), RankId(destination), ChannelTag(0), "value", bytes, slots};
}

// One receive that only an error ends: rank r waits for r - 1.
absl::Status WaitForPrevious(Transport& transport, Deadline deadline = Soon()) {
  const int self = transport.rank().value();
  const int previous = (self + transport.size() - 1) % transport.size();
  ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(Spec(previous, self, 8)));
  return receive->Receive(0, deadline);
}

// A token of `bytes` bytes goes round; each rank adds one to each byte.
absl::Status PassAround(Transport& transport, int64_t bytes, int rounds) {
  const int self = transport.rank().value(), size = transport.size();
  const int next = (self + 1) % size, previous = (self + size - 1) % size;
  ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(Spec(self, next, bytes)));
  ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(Spec(previous, self, bytes)));
  for (int64_t k = 0; k < rounds; ++k) {
    const auto add_one = [&]() -> absl::Status {
      RETURN_IF_ERROR(receive->Receive(k, Soon()));
      const char* from = receive->Slot(k);
      const char expected = static_cast<char>(k * size + (self + size - 1) % size + 1);
      for (int64_t i = 0; i < bytes; ++i) {
        if (from[i] != expected) return absl::DataLossError(absl::StrCat("rank ", self, ", message ", k, ", byte ", i));
      }
      receive->Release(k);
      return absl::OkStatus();
    };
    if (self != 0) RETURN_IF_ERROR(add_one());
    RETURN_IF_ERROR(send->Acquire(k, Soon()));
    std::memset(send->Slot(k), static_cast<int>(k * size + self + 1), static_cast<size_t>(bytes));
    send->Send(k);
    if (self == 0) RETURN_IF_ERROR(add_one());
  }
  return absl::OkStatus();
}

using Body = std::function<absl::Status(Transport&)>;

class ShmProcessesTest : public ::testing::Test {
 protected:
  // What never had a name is not left behind by any end.
  ~ShmProcessesTest() override {
    processes_.clear();
    EXPECT_THAT(names_.Of(pids_), IsEmpty());
    unlink(path_.c_str());
  }

  ShmWorld World(int rank, int size) const { return {RankId(rank), size, rendezvous_, start_deadline_}; }

  void Start(const ShmWorld& world, const Body& body) {
    processes_.push_back(std::make_unique<RankProcess>([=]() -> absl::Status {
      ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, MakeShmTransport(world));
      return body(*transport);
    }));
    pids_.push_back(processes_.back()->pid());
  }
  void StartAll(int size, const Body& body) {
    for (int rank = 0; rank < size; ++rank) Start(World(rank, size), body);
  }
  // In the order of their start.
  std::vector<absl::Status> JoinAll() {
    std::vector<absl::Status> statuses;
    for (auto& process : processes_) statuses.push_back(process->Join());
    processes_.clear();
    return statuses;
  }
  void JoinAllOk() {
    for (const absl::Status& status : JoinAll()) EXPECT_TRUE(status.ok()) << status;
  }

  // Ranks count here how far they have come.
  void WaitForReached(int count) const {
    for (const Deadline hang = Soon(); reached_->load() < count && steady_clock::now() < hang;) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  NamesInDevShm names_;
  std::atomic<int>* const reached_ =
      new (mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          std::atomic<int>(0);
  const std::string path_ = absl::StrCat(::testing::TempDir(), "/shm_processes_test.", getpid());
  std::string rendezvous_ = absl::StrCat("file:", path_);
  milliseconds start_deadline_ = seconds(60);
  std::vector<std::unique_ptr<RankProcess>> processes_;
  std::vector<pid_t> pids_;  // of all that there were
};

TEST_F(ShmProcessesTest, MessagesGoRound) {
  for (int size : {1, 2, 3, 5}) {
    StartAll(size, [](Transport& transport) { return PassAround(transport, 5000, 200); });
    JoinAllOk();
    EXPECT_FALSE(Exists(path_));
  }
}

TEST_F(ShmProcessesTest, MeetAtAPort) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    rendezvous_ = absl::StrCat("tcp://", host, ":", FreePort());
    StartAll(4, [](Transport& transport) { return PassAround(transport, 8, 50); });
    JoinAllOk();
  }
}

TEST_F(ShmProcessesTest, MeetAtAPortWhereRankZeroComesLast) {
  rendezvous_ = absl::StrCat("tcp://127.0.0.1:", FreePort());
  for (int rank : {2, 1}) Start(World(rank, 3), [](Transport& transport) { return PassAround(transport, 8, 50); });
  std::this_thread::sleep_for(milliseconds(100));
  Start(World(0, 3), [](Transport& transport) { return PassAround(transport, 8, 50); });
  JoinAllOk();
}

// A world follows another at one place, while slower ranks may still be leaving the first.
TEST_F(ShmProcessesTest, ManyWorldsAtOnePlace) {
  const std::string port = absl::StrCat("tcp://127.0.0.1:", FreePort());
  for (const std::string& place : {rendezvous_, port}) {
    rendezvous_ = place;
    for (int rank = 0; rank < 3; ++rank) {
      processes_.push_back(std::make_unique<RankProcess>([world = World(rank, 3)]() -> absl::Status {
        for (int i = 0; i < 10; ++i) {
          ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, MakeShmTransport(world));
          RETURN_IF_ERROR(PassAround(*transport, 8, 3));
        }
        return absl::OkStatus();
      }));
    }
    JoinAllOk();
  }
}

// Rank 1 of three dies while the others wait; the dead process is a zombie until it is joined, or gone.
TEST_F(ShmProcessesTest, DeathOfARankEndsTheWaitsOfTheOthers) {
  for (const bool is_zombie : {true, false}) {
    reached_->store(0);
    StartAll(3, [&](Transport& transport) -> absl::Status {
      RETURN_IF_ERROR(PassAround(transport, 8, 10));
      reached_->fetch_add(1);
      ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive,
                       transport.OpenReceive({transport.rank(), transport.rank(), ChannelTag(7), "never", 8}));
      return receive->Receive(0, Soon());
    });
    WaitForReached(3);
    const pid_t victim = processes_[1]->pid();
    const steady_clock::time_point killed_at = steady_clock::now();
    processes_[1]->Signal(SIGKILL);
    if (!is_zombie) {
      EXPECT_EQ(processes_[1]->Join(), absl::AbortedError("signal 9"));
    }
    for (int survivor : {0, 2}) {
      const absl::Status status = processes_[survivor]->Join();
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("rank 1 (process ", victim, ") has died")));
    }
    EXPECT_LT(steady_clock::now() - killed_at, kPromptly);
    processes_.clear();
  }
}

TEST_F(ShmProcessesTest, ProcessThatEndsWithItsTransportOpenIsDead) {
  StartAll(2, [](Transport& transport) {
    if (transport.rank() == RankId(1)) _exit(3);
    return WaitForPrevious(transport);
  });
  const std::vector<absl::Status> statuses = JoinAll();
  EXPECT_EQ(statuses[1], absl::AbortedError("exit status 3"));
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kUnavailable) << statuses[0];
}

TEST_F(ShmProcessesTest, WaitForARankThatHasClosedItsTransportEnds) {
  const steady_clock::time_point start = steady_clock::now();
  StartAll(3, [](Transport& transport) -> absl::Status {
    if (transport.rank() == RankId(1)) {  // leaves its last message behind, which still arrives
      ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(Spec(1, 2, 8)));
      send->Send(0);
      return absl::OkStatus();
    }
    if (transport.rank() == RankId(0)) return WaitForPrevious(transport);  // of rank 2
    std::this_thread::sleep_for(milliseconds(200));
    ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(Spec(1, 2, 8)));
    RETURN_IF_ERROR(receive->Receive(0, Soon()));
    return receive->Receive(1, Soon());
  });
  const std::vector<absl::Status> statuses = JoinAll();
  EXPECT_LT(steady_clock::now() - start, kPromptly);
  EXPECT_TRUE(statuses[1].ok()) << statuses[1];
  EXPECT_EQ(statuses[2].code(), absl::StatusCode::kUnavailable) << statuses[2];
  EXPECT_THAT(std::string(statuses[2].message()),
              AllOf(HasSubstr("rank 2: channel 'value' (rank 1 -> rank 2, tag 0), message 1: its arrival"),
                    HasSubstr("rank 1 has closed its transport")));
  EXPECT_EQ(statuses[0], statuses[2]);
}

TEST_F(ShmProcessesTest, FailureOfOneRankReachesAll) {
  const absl::Status broken = absl::DataLossError("step 7, rank 2, 1F2: label 12 is out of range");
  StartAll(4, [&](Transport& transport) {
    if (transport.rank() == RankId(2)) transport.Fail(broken);
    return WaitForPrevious(transport);
  });
  for (const absl::Status& status : JoinAll()) EXPECT_EQ(status, broken);
}

// Rank 1 sends as fast as it can; rank 0 counts what comes. Stopped, rank 1 is waited for, and no longer than a second.
TEST_F(ShmProcessesTest, StoppedProcessIsFoundByTheDeadline) {
  StartAll(2, [&](Transport& transport) -> absl::Status {
    if (transport.rank() == RankId(1)) {
      ASSIGN_OR_RETURN(std::unique_ptr<SendEnd> send, transport.OpenSend(Spec(1, 0, 8)));
      for (int64_t k = 0;; ++k) {
        RETURN_IF_ERROR(send->Acquire(k, Soon()));
        send->Send(k);
      }
    }
    ASSIGN_OR_RETURN(std::unique_ptr<ReceiveEnd> receive, transport.OpenReceive(Spec(1, 0, 8)));
    for (int64_t k = 0;; ++k) {
      RETURN_IF_ERROR(receive->Receive(k, steady_clock::now() + seconds(k == 0 ? 60 : 1)));
      receive->Release(k);
      reached_->fetch_add(1);
    }
  });
  WaitForReached(1000);
  const int before = reached_->load();
  WaitForReached(before + 1000);  // rank 1 keeps sending until it is stopped
  EXPECT_GE(reached_->load(), before + 1000);
  const steady_clock::time_point stopped_at = steady_clock::now();
  processes_[1]->Signal(SIGSTOP);
  const absl::Status status = processes_[0]->Join();
  const steady_clock::duration found_after = steady_clock::now() - stopped_at;
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("see what kept rank 1"));
  EXPECT_GE(found_after, milliseconds(900));
  EXPECT_LT(found_after, kPromptly);
}

TEST_F(ShmProcessesTest, MissingRanksAreNamed) {
  start_deadline_ = milliseconds(300);
  for (const std::string& place : {rendezvous_, absl::StrCat("tcp://127.0.0.1:", FreePort())}) {
    rendezvous_ = place;
    for (int rank : {0, 2}) Start(World(rank, 4), [](Transport&) { return absl::OkStatus(); });
    for (const absl::Status& status : JoinAll()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("waited 0.3"), HasSubstr(place), HasSubstr("for ranks 1, 3 of 4")));
    }
  }
}

TEST_F(ShmProcessesTest, RankZeroThatDoesNotListenIsMissing) {
  start_deadline_ = milliseconds(300);
  rendezvous_ = absl::StrCat("tcp://127.0.0.1:", FreePort());
  Start(World(1, 2), [](Transport&) { return absl::OkStatus(); });
  const absl::Status status = processes_[0]->Join();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("for rank 0 of 2"), HasSubstr("cannot connect")));
}

TEST_F(ShmProcessesTest, AnotherProgramAtThePortIsNamedBeforeTheDeadline) {
  const OtherListener other;
  rendezvous_ = absl::StrCat("tcp://127.0.0.1:", other.port());
  const auto expect_refused = [&](const std::string& answer) {
    for (int rank : {0, 1}) Start(World(rank, 2), [](Transport&) { return absl::OkStatus(); });
    if (answer[0] == '\'') other.Say("220 mail\r\n", 2);
    for (const absl::Status& status : JoinAll()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(absl::StrCat("what listens at ", rendezvous_, " does not answer as rank 0 does")),
                        HasSubstr(answer), HasSubstr("give all ranks another port")));
    }
  };
  const steady_clock::time_point start = steady_clock::now();
  expect_refused("'220 mail\\r\\n'");
  expect_refused("takes connections but does not answer");
  EXPECT_LT(steady_clock::now() - start, seconds(30));
}

TEST_F(ShmProcessesTest, PortThatIsTakenAndHangsUpIsNamedAtTheDeadline) {
  start_deadline_ = milliseconds(300);
  const OtherListener other;
  rendezvous_ = absl::StrCat("tcp://127.0.0.1:", other.port());
  Start(World(0, 2), [](Transport&) { return absl::OkStatus(); });
  std::atomic<bool> over{false};
  std::thread hangs_up([&] {
    while (!over) other.Say("", 1);
  });
  const absl::Status status = processes_[0]->Join();
  over = true;
  Start(World(1, 2), [](Transport&) { return absl::OkStatus(); });  // lets go of the last accept
  hangs_up.join();
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not answer as rank 0 does"));
}

TEST_F(ShmProcessesTest, NamesThatCannotBeLookedUpJustNowAreAskedForAgain) {
  lookups_that_fail = 3;
  rendezvous_ = absl::StrCat("tcp://localhost:", FreePort());
  StartAll(2, [](Transport& transport) { return PassAround(transport, 8, 10); });
  lookups_that_fail = 0;
  JoinAllOk();
}

TEST_F(ShmProcessesTest, DeathWhileRanksGatherIsNoticed) {
  for (int rank : {0, 1}) {
    Start(World(rank, 3), [](Transport&) { return absl::OkStatus(); });
    while (!Exists(path_)) std::this_thread::sleep_for(milliseconds(1));
  }
  std::this_thread::sleep_for(milliseconds(200));
  const steady_clock::time_point killed_at = steady_clock::now();
  processes_[0]->Signal(SIGKILL);
  const absl::Status status = processes_[1]->Join();
  EXPECT_LT(steady_clock::now() - killed_at, kPromptly);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 0 (process"));
}

TEST_F(ShmProcessesTest, SigtermEndsTheGathering) {
  for (const std::string& place : {rendezvous_, absl::StrCat("tcp://127.0.0.1:", FreePort())}) {
    rendezvous_ = place;
    reached_->store(0);
    processes_.push_back(std::make_unique<RankProcess>([&]() -> absl::Status {
      EndWaitsOnSigterm();
      reached_->store(1);
      return MakeShmTransport(World(1, 2)).status();
    }));
    WaitForReached(1);
    processes_[0]->Signal(SIGTERM);
    const absl::Status status = processes_[0]->Join();
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("rank 1 waited at"), HasSubstr("SIGTERM")));
    processes_.clear();
  }
}

TEST_F(ShmProcessesTest, WorldsOfTwoSizesAreRefusedOnAllRanks) {
  for (const std::string& place : {rendezvous_, absl::StrCat("tcp://127.0.0.1:", FreePort())}) {
    rendezvous_ = place;
    Start(World(0, 4), [](Transport&) { return absl::OkStatus(); });
    Start(World(1, 4), [](Transport&) { return absl::OkStatus(); });
    Start(World(2, 5), [](Transport&) { return absl::OkStatus(); });
    for (const absl::Status& status : JoinAll()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(" 4 ranks"), HasSubstr(" 5 ranks")));
    }
  }
}

TEST_F(ShmProcessesTest, RankStartedTwiceIsRefusedOnAllRanks) {
  for (const std::string& place : {rendezvous_, absl::StrCat("tcp://127.0.0.1:", FreePort())}) {
    for (int twice : {0, 1}) {
      rendezvous_ = place;
      for (int rank : {0, 1, twice}) Start(World(rank, 3), [](Transport&) { return absl::OkStatus(); });
      for (const absl::Status& status : JoinAll()) {
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("rank ", twice, " was started twice")));
      }
    }
  }
}

TEST_F(ShmProcessesTest, SpecsThatDifferAreRefused) {
  StartAll(2, [&](Transport& transport) -> absl::Status {
    if (transport.rank() == RankId(0)) {
      const absl::Status status = transport.OpenSend(Spec(0, 1, 4096)).status();
      reached_->fetch_add(1);
      WaitForReached(2);
      return status;
    }
    WaitForReached(1);
    const absl::Status status = transport.OpenReceive(Spec(0, 1, 2048, 3)).status();
    reached_->fetch_add(1);
    return status;
  });
  const std::vector<absl::Status> statuses = JoinAll();
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_EQ(statuses[1].code(), absl::StatusCode::kInvalidArgument) << statuses[1];
  EXPECT_THAT(std::string(statuses[1].message()),
              AllOf(HasSubstr("2 slots of 4096 bytes"), HasSubstr("3 slots of 2048 bytes")));
}

TEST_F(ShmProcessesTest, ChannelThatDoesNotFitIsRefusedAndTheNextOneOpens) {
  StartAll(1, [](Transport& transport) -> absl::Status {
    for (int64_t bytes : {int64_t{1} << 50, int64_t{1} << 62}) {
      const absl::Status status = transport.OpenSend(Spec(0, 0, bytes)).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      if (!absl::StrContains(status.message(), "of /dev/shm")) return status;
      if (!absl::StrContains(status.message(), absl::StrCat("2 slots of ", bytes, " bytes) needs"))) return status;
    }
    return PassAround(transport, 8, 10);
  });
  JoinAllOk();
}

// Everything is killed, and what is left of it does not keep the next run from the same place.
TEST_F(ShmProcessesTest, KilledRunsLeaveNothingThatMatters) {
  Start(World(0, 3), [](Transport&) { return absl::OkStatus(); });  // while the ranks gather
  while (!Exists(path_)) std::this_thread::sleep_for(milliseconds(1));
  Start(World(1, 3), [](Transport&) { return absl::OkStatus(); });
  std::this_thread::sleep_for(milliseconds(100));
  for (auto& process : processes_) process->Signal(SIGKILL);
  processes_.clear();
  EXPECT_TRUE(Exists(path_));
  StartAll(3, [&](Transport& transport) {
    reached_->fetch_add(1);
    return WaitForPrevious(transport);
  });
  WaitForReached(3);
  EXPECT_FALSE(Exists(path_));
  for (auto& process : processes_) process->Signal(SIGKILL);
  processes_.clear();
  StartAll(3, [](Transport& transport) { return PassAround(transport, 100, 10); });
  JoinAllOk();
}

TEST_F(ShmProcessesTest, AnythingInTheFileIsOverwritten) {
  const std::string alive = absl::StrCat("pipeloom-shm-1 pid ", getpid(), " start ");
  for (const std::string& text : {std::string("\0\xff what is this", 15), std::string("pipeloom-shm-1"),
                                  alive + "1 fd 1 inode 1\n", std::string(5000, 'x')}) {
    std::ofstream(path_) << text;
    StartAll(2, [](Transport& transport) { return PassAround(transport, 8, 10); });
    JoinAllOk();
  }
}

TEST(ShmWorldTest, WorldsThatCannotBeAreRefused) {
  const auto error = [](int rank, int size, const std::string& rendezvous) {
    const absl::Status status = MakeShmTransport({RankId(rank), size, rendezvous, milliseconds(200)}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error(2, 2, "file:/tmp/x"), HasSubstr("rank 2 of 2 ranks"));
  EXPECT_THAT(error(-1, 2, "file:/tmp/x"), HasSubstr("rank -1 of 2 ranks"));
  EXPECT_THAT(error(0, 0, "file:/tmp/x"), HasSubstr("rank 0 of 0 ranks"));
  EXPECT_THAT(error(0, 2, "/tmp/x"), HasSubstr("give file:/path/of/a/file or tcp://host:port"));
  EXPECT_THAT(error(0, 2, "tcp://localhost"), HasSubstr("has no port"));
  EXPECT_THAT(error(0, 2, "tcp://localhost:70000"), HasSubstr("port from 1 to 65535"));
  EXPECT_THAT(error(0, 2, "tcp://:80"), HasSubstr("has no host"));
  const absl::Status status = MakeShmTransport({RankId(0), 1, "file:/no/such/folder/file", milliseconds(200)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rendezvous file /no/such/folder/file"));
}

}  // namespace
}  // namespace pipeloom
