"""pipeloom-run: runs a MindSpore script as the ranks of a pipeline, one process each, under mpirun.

    pipeloom-run -n 2 [--log_dir log_output] [--hostfile F] script.py arguments

Rank N writes to worker_N.log in the log folder of its host, and what rank 0 writes is shown too. scheduler.log says on
which host and as which process each rank ran, and how it ended. The exit status is the script's; when a rank fails, all
end, and the first one's traceback is shown.

This file is run by its path: importing the package would load MindSpore, which only the ranks need.
"""

import argparse
import datetime
import glob
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import worker  # noqa: E402, from the folder of this file
del sys.path[0]

_STARTED = re.compile(r"rank (\d+): (host \S+, pid \d+)$")
_FAILED = re.compile(r"rank (\d+): failed: (.*)")
_TRACEBACK = re.compile(r"rank (\d+): \| (.*)")
_ENDED = re.compile(r"rank (\d+): (?:exit status (\d+)|signal (\d+) \([^)]*\)(, sent)?)")

# Seconds: for ranks to come up before they are told to end, for those that hear of another's failure by themselves to
# say so, and for mpirun to end after them.
_START = 10
_HEAR = 1
_END = worker.GRACE + 10
_POLL = 0.1
# What a script may read; other variables of the environment mean something on this host only.
_FOR_OTHER_HOSTS = re.compile(r"(PYTHONPATH|DATA_PATH|(PIPELOOM|GLOG|MS|OMP)_\w+)$")


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="pipeloom-run", allow_abbrev=False,
        description="Runs a MindSpore script as the ranks of a pipeline, one process each.")
    parser.add_argument("-n", type=int, required=True, metavar="RANKS", help="how many processes")
    parser.add_argument("--log_dir", default="log_output", metavar="DIR",
                        help="folder for worker_N.log and scheduler.log (default: %(default)s)")
    parser.add_argument("--hostfile", metavar="FILE", help="hosts to run on, as mpirun reads them (default: this one)")
    parser.add_argument("script", help="a Python file")
    rest = parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own")
    rest.required = False  # as argparse thinks of them where the script is missing too
    options = parser.parse_args(arguments)
    if options.n < 1:
        parser.error(f"-n {options.n}: there must be at least one rank")
    if not os.path.isfile(options.script):
        parser.error(f"there is no script {options.script}")
    if options.hostfile and not os.path.isfile(options.hostfile):
        parser.error(f"there is no file {options.hostfile} with hosts")
    if not shutil.which("mpirun"):
        parser.error("mpirun is not there; install Open MPI (Debian: openmpi-bin)")
    try:
        os.makedirs(options.log_dir, exist_ok=True)
    except OSError as error:
        parser.error(f"--log_dir {options.log_dir} cannot be made: {error.strerror}")
    options.log_dir = os.path.abspath(options.log_dir)
    return options


def _command(options):
    command = [
        "mpirun", "-n", str(options.n),
        "--oversubscribe",  # there may be fewer cores than ranks
        "--bind-to", "none",  # a rank may have several compute threads
        "--mca", "odls_base_sigkill_timeout", "1"  # which mpirun sleeps through, twice, where it ends the ranks itself
    ]
    if options.hostfile:
        command += ["--hostfile", options.hostfile]
        for name in sorted(filter(_FOR_OTHER_HOSTS.match, os.environ)):
            command += ["-x", name]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    return command + [
        sys.executable, worker.__file__, json.dumps([options.log_dir, options.script, options.arguments])
    ]


class _SchedulerLog:
    """scheduler.log: what the ranks' watchers and mpirun say, with the time; and what it comes to."""

    def __init__(self, path):
        self._file = open(path, "w", encoding="utf-8", buffering=1)
        self._rest = b""
        self._places = {}  # of each rank: its host and process
        self._tracebacks = {}
        self._headlines = {}
        self._failures = []  # ranks that said so themselves, the first one first
        self._ends = {}  # rank: (what, exit status)
        self._killed = []  # ranks that neither they nor we have ended
        self.others = []  # lines of mpirun itself

    def write(self, line):
        self._file.write(f"{datetime.datetime.now().isoformat(' ', 'milliseconds')} {line}\n")

    def read(self, data):
        """Takes a piece of mpirun's output."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._read_line(line.decode(errors="replace").rstrip())

    def _read_line(self, line):
        self.write(line)
        if match := _STARTED.match(line):
            self._places[int(match[1])] = match[2]
        elif match := _FAILED.match(line):
            self._failures.append(int(match[1]))
            self._headlines[int(match[1])] = ": " + match[2]
        elif match := _TRACEBACK.match(line):
            self._tracebacks.setdefault(int(match[1]), []).append(match[2])
        elif match := _ENDED.match(line):
            rank = int(match[1])
            what = line.split(": ", 1)[1]
            status = int(match[2]) if match[2] else 128 + int(match[3])
            if match[4] and rank in self._failures:
                status = 1  # it had failed already, and was too slow to end by itself
            self._ends[rank] = (what, status)
            if match[3] and not match[4]:
                self._killed.append(rank)
            elif match[2] not in (None, "0"):
                self._failures.append(rank)
        elif line.strip("- "):
            self.others.append(line)

    def cause(self):
        """The rank that the run failed with; None if none is known. What kills a process comes before what is said of
        it elsewhere."""
        for rank in self._killed + self._failures + [rank for rank, (_, status) in self._ends.items() if status]:
            if rank in self._ends:
                return rank
        return None

    def status(self, mpirun_status):
        cause = self.cause()
        return mpirun_status if cause is None else self._ends[cause][1]

    def explain(self, log_dir, is_shown):
        """How the run failed, as lines. `is_shown`: what rank 0 wrote has been shown."""
        cause = self.cause()
        if cause is None:
            return self.others
        text = [] if cause == 0 and is_shown else self._tracebacks.get(cause, [])
        place = self._places.get(cause, "not started")
        return text + [f"pipeloom-run: rank {cause} ({place}) ended with {self._ends[cause][0]}"
                       f"{self._headlines.get(cause, '')}; see {worker.log_file(log_dir, cause)}"]

    def close(self, ranks, status):
        for rank in set(range(ranks)) - set(self._ends):
            self.write(f"rank {rank}: " + ("ended with mpirun; how is not known" if rank in self._places else
                                           "did not start"))
        self.write(f"exit status {status}")

    def have_started(self, ranks):
        return len(self._places) == ranks

    def have_ended(self, ranks):
        return len(self._ends) == ranks


class _Shown:
    """Shows a file while it grows."""

    def __init__(self, path):
        self._path = path
        self._file = None

    def is_there(self):
        return self._file is not None

    def show(self):
        if self._file is None:
            try:
                self._file = open(self._path, "rb")
            except FileNotFoundError:
                return  # not yet; or the rank runs on another host
        while data := self._file.read(1 << 16):
            sys.stdout.buffer.write(data)
        sys.stdout.flush()


class _End:
    """The end of all ranks before their scripts', when a signal or a failed rank asks for it."""

    def __init__(self, mpirun, log, ranks):
        self.signal = None  # that asks for it
        self._mpirun = mpirun
        self._log = log
        self._ranks = ranks
        self._latest_start = time.monotonic() + _START
        self._asked = None  # when
        self._steps = [worker.END_ALL, worker.LEAVE, signal.SIGTERM, signal.SIGKILL]
        self._last_step = None  # when
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, number, _):
        self.signal = self.signal or signal.Signals(number)

    def _is_due(self, step, now):
        if step == worker.END_ALL:
            # Ranks that are about to start could not yet say how they ended.
            return ((self._log.have_started(self._ranks) or now > self._latest_start) and
                    (self.signal is not None or now > self._asked + _HEAR))
        if step == worker.LEAVE and self._log.have_ended(self._ranks):
            return True
        return now > self._last_step + _END

    def bring_about(self):
        """Sends what is due."""
        if self.signal is None and self._log.cause() is None or not self._steps:
            return
        now = time.monotonic()
        self._asked = self._asked or now
        if self._steps[0] == worker.END_ALL and self._log.have_ended(self._ranks):
            self._steps.pop(0)  # each by itself
        if self._is_due(self._steps[0], now):
            number = self._steps.pop(0)
            cause = self.signal.name if self.signal else f"the end of rank {self._log.cause()}"
            self._log.write(f"after {cause}: {signal.Signals(number).name} to mpirun")
            self._mpirun.send_signal(number)
            self._last_step = now


def _run(options):
    """Returns the exit status."""
    for old in glob.glob(os.path.join(glob.escape(options.log_dir), "worker_*.log")):
        os.remove(old)
    log = _SchedulerLog(os.path.join(options.log_dir, "scheduler.log"))
    command = _command(options)
    log.write("command: " + shlex.join(["pipeloom-run", *sys.argv[1:]]))
    log.write("in: " + os.getcwd())
    log.write("mpirun: " + shlex.join(command))
    # A session of its own: ctrl-C comes here alone.
    mpirun = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              start_new_session=True, preexec_fn=worker.end_with_parent)
    end = _End(mpirun, log, options.n)
    shown = _Shown(worker.log_file(options.log_dir, 0))
    while True:
        end.bring_about()
        shown.show()
        if select.select([mpirun.stdout], [], [], _POLL)[0]:
            data = os.read(mpirun.stdout.fileno(), 1 << 16)
            if not data:
                break
            log.read(data)
    status = mpirun.wait()
    shown.show()
    if end.signal:
        status = 128 + end.signal
        lines = [f"pipeloom-run: ended by {end.signal.name}"]
    else:
        status = log.status(128 - status if status < 0 else status)
        lines = log.explain(options.log_dir, shown.is_there()) if status else []
    log.close(options.n, status)
    print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr)
    return status


def main():
    return _run(_parse(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
