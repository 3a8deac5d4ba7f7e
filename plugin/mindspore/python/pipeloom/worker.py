"""One rank of pipeloom-run: a process that runs the script, and one that watches it.

mpirun starts `python worker.py JSON`, where JSON is [log folder, script, arguments]: one word, since mpirun has a
meaning of its own for some. The process forks. The child writes to worker_N.log and runs the script. The parent says on
its standard error, which mpirun carries to pipeloom-run, what becomes of it:

    rank 1: host a, pid 17
    rank 1: failed: ValueError: label 12 is out of range
    rank 1: | Traceback (most recent call last):
    rank 1: | ...
    rank 1: exit status 1                                      or: signal 9 (Killed)

`failed` is said before the other ranks hear of it, so that the cause comes before what it causes.
"""

import ctypes
import faulthandler
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
import traceback

# Seconds that a script has to end, from when it is asked to or has failed.
GRACE = 5

# What pipeloom-run sends through mpirun when the ranks are to end, and when it has heard how each has. Of SIGTERM, or
# when a rank of MPI is gone, mpirun makes an end of its own, in which it sleeps instead of listening.
END_ALL = signal.SIGUSR1
LEAVE = signal.SIGUSR2
# Seconds to wait for the latter; longer than all that pipeloom-run waits for before.
_STAY = 40

_POLL_MS = 200
_PR_SET_PDEATHSIG = 1
_IOLBF = 1
# Bytes that reach pipeloom-run in one piece, not mixed with other ranks': those of one read of mpirun.
_PIECE = 4096
_LONGEST_LINE = 500


def log_file(log_dir, rank):
    return os.path.join(log_dir, f"worker_{rank}.log")


def end_with_parent(number=signal.SIGTERM):
    """This process gets the signal when its parent ends, however that ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))


class _Watch:
    """The parent: sees the child to its end, and says what it sees."""

    def __init__(self, rank, child, failures):
        self._rank = rank
        self._child = child
        self._failures = failures  # read end of a pipe
        self._mpirun = os.getppid()
        self._deadline = None
        self._reason = None  # for which the child is to end
        self._may_leave = False
        self._sent = ""  # whether we have sent a signal, and why
        signal.signal(END_ALL, lambda *_: self._end("pipeloom-run's request"))
        signal.signal(signal.SIGTERM, lambda *_: self._end("mpirun's SIGTERM"))
        signal.signal(LEAVE, self._note_leave)

    def _say(self, *texts):
        """A line each; the first and the last if not all fit. Not through stdout, which mpirun makes a terminal."""
        lines = [f"rank {self._rank}: {text[:_LONGEST_LINE]}\n".encode(errors="replace") for text in texts]
        while sum(map(len, lines)) > _PIECE:
            del lines[1]
        os.write(2, b"".join(lines))

    def _end_soon(self, reason):
        if self._deadline is None:
            self._deadline = time.monotonic() + GRACE
            self._reason = reason

    def _note_leave(self, *_):
        self._may_leave = True

    def _send(self, number):
        """To the script and all that it has started."""
        try:
            os.killpg(self._child, number)
        except ProcessLookupError:
            pass  # they have ended

    def _end(self, reason):
        """Asks the script to end, once: a second SIGTERM would not let it say where it was."""
        if not self._sent:
            self._sent = f", sent after {reason}"
            self._end_soon(reason)
            self._send(signal.SIGTERM)

    def _read_failure(self):
        """Passes on what the child wrote, which it does at once."""
        text = os.read(self._failures, 2 * _PIECE).decode(errors="replace")
        if text:
            headline, *lines = text.rstrip().splitlines()
            self._say("failed: " + headline, *("| " + line for line in lines))
            self._end_soon("its failure")

    def run(self):
        """Until the child has ended, which is no failure of this process: mpirun has nothing to do about it."""
        self._say(f"host {socket.gethostname()}, pid {self._child}")
        ended = os.pidfd_open(self._child)
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.register(self._failures, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(_POLL_MS)}
            if self._failures in ready:
                self._read_failure()
                poll.unregister(self._failures)
            if ended in ready:
                break
            if os.getppid() != self._mpirun:
                self._end("the end of mpirun")
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._sent = f", sent {GRACE} seconds after {self._reason}"
                self._send(signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1])
        if code < 0:
            self._say(f"signal {-code} ({signal.strsignal(-code)}){self._sent}")
        else:
            self._say(f"exit status {code}")
        if code != 0:
            self._send(signal.SIGKILL)  # to what it has left
            self._stay()

    def _stay(self):
        latest = time.monotonic() + _STAY
        while not self._may_leave and time.monotonic() < latest and os.getppid() == self._mpirun:
            select.select([], [], [], _POLL_MS / 1000)


def _write_to(path):
    """Output of Python, C and C++ goes into the file line by line: a rank that is killed has said what it said."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    sys.stdout.reconfigure(line_buffering=True)
    libc = ctypes.CDLL(None)
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, _IOLBF, 0)


def _failure_of(error, script):
    """(In one line, in full) what the script failed with; the traceback begins with its own frames. Empty where it ends
    by itself and well."""
    if isinstance(error, SystemExit):
        if error.code is None or error.code == 0:
            return "", ""
        text = str(error.code) if not isinstance(error.code, int) else f"SystemExit: {error.code}"
        return text.strip().split("\n")[0], text
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != script:
        frames = frames.tb_next
    if frames is None and not isinstance(error, SyntaxError):
        frames = error.__traceback__
    text = "".join(traceback.format_exception(type(error), error, frames))
    # MindSpore's own texts go on for many lines.
    return f"{type(error).__name__}: {str(error).strip()}".split("\n")[0], text


def _status_of(error):
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    return error.code & 0xff if isinstance(error.code, int) else 1


def _run_script(script, arguments, report):
    """The child: runs the script as Python would, with Pipeloom enabled. Returns the exit status."""
    sys.argv = [script, *arguments]
    path = os.path.abspath(script)
    sys.path[0] = os.path.dirname(path)
    pipeloom = None
    headline, failure, status = "", "", 0
    try:
        import pipeloom  # takes seconds where MindSpore comes with it; the parent does without
        pipeloom.enable()
        runpy.run_path(path, run_name="__main__")
    except BaseException as error:  # SystemExit among them: all ranks are told how this one ended
        headline, failure = _failure_of(error, path)
        status = _status_of(error)
    if failure:
        print(failure.rstrip(), file=sys.stderr, flush=True)
        text = failure.encode(errors="replace")
        os.write(report, headline[:_LONGEST_LINE].encode(errors="replace") + b"\n" + text[-_PIECE:])
    os.close(report)
    if pipeloom is not None:
        try:
            pipeloom.end(failure or None)
        except Exception:  # the script's own failure comes first
            traceback.print_exc()
            status = status or 1
    return status


def main():
    log_dir, script, arguments = json.loads(sys.argv[1])
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    failures, report = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child:
        os.close(report)
        try:
            os.setpgid(child, child)  # as the child itself does; whoever comes first
        except OSError:
            pass  # it has ended
        _Watch(rank, child, failures).run()
        return
    os.close(failures)
    end_with_parent(signal.SIGKILL)
    os.setpgid(0, 0)  # signals of mpirun reach the parent alone
    if os.getppid() != parent:
        sys.exit("the process that watches this one is gone")
    _write_to(log_file(log_dir, rank))
    # A crash, and an end from outside, leave in the log where the script was.
    faulthandler.enable()
    faulthandler.register(signal.SIGTERM, chain=True)
    sys.exit(_run_script(script, arguments, report))


if __name__ == "__main__":
    main()
