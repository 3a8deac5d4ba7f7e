"""Runs //samples:mnist_pipeline as processes, and finds and stops them."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BINARY = os.path.abspath(os.path.join("samples", "mnist_pipeline"))
# mpirun waits two seconds, not one, from SIGTERM to SIGKILL: tests share a
# machine with others.
MPIRUN = [
    "mpirun", "--oversubscribe", "--bind-to", "none", "--tag-output", "--mca",
    "odls_base_sigkill_timeout", "2"
]


class InFolder(unittest.TestCase):
    """A folder of its own for each test; its path is short, as sockets' are."""

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="pl", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def environment(self, **variables):
        """That of this process, with what mpirun wants as root in a sandbox."""
        return dict(os.environ, HOME=self.folder, TMPDIR=self.folder,
                    OMPI_ALLOW_RUN_AS_ROOT="1",
                    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **variables)

    def run_program(self, command, cwd=None, **variables):
        return subprocess.run(command, capture_output=True, text=True,
                              timeout=100, check=False, cwd=cwd,
                              env=self.environment(**variables))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def lines_of(rank, output):
    """What rank N said on either stream, from mpirun --tag-output."""
    parts = re.split(r"\[\d+,(\d+)\]<std(?:out|err)>:", output)
    return "".join(said for of, said in zip(parts[1::2], parts[2::2])
                   if int(of) == rank)


class Running:
    """mpirun of the sample, with its output as it comes."""

    def __init__(self, case, command):
        self._output = open(case.path("output"), "w+b")
        case.addCleanup(self._output.close)
        self._mpirun = subprocess.Popen(
            command, stdout=self._output, stderr=subprocess.STDOUT,
            env=case.environment())
        self._case = case
        case.addCleanup(self._end)

    def _end(self):
        if self._mpirun.poll() is None:
            self._mpirun.terminate()  # it then ends its ranks, which kill does not
            try:
                self._mpirun.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self._mpirun.kill()
                self._mpirun.wait()

    def output(self):
        return read(self._case.path("output")).decode()

    def wait_for(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.output():
            self._case.assertLess(time.monotonic(), end, self.output())
            self._case.assertIsNone(self._mpirun.poll(), self.output())
            time.sleep(0.05)

    def process(self, rank):
        """The process id of a rank."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                environment = read(f"/proc/{pid}/environ").split(b"\0")
                program = os.readlink(f"/proc/{pid}/exe")
            except OSError:
                continue
            if (program == os.path.realpath(BINARY) and
                    b"OMPI_COMM_WORLD_RANK=%d" % rank in environment and
                    b"HOME=" + self._case.folder.encode() in environment):
                return int(pid)
        self._case.fail(f"there is no process of rank {rank}")
        return None

    def send(self, rank, number):
        pid = self.process(rank)
        os.kill(pid, number)
        return pid

    def kill_mpirun(self):
        self._mpirun.kill()
        self._mpirun.wait()

    def end(self, seconds):
        """Waits for the end; returns its code and all output."""
        try:
            code = self._mpirun.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self._case.fail(f"no end after {seconds} seconds:\n" +
                            self.output())
        return code, self.output()


def is_running(pid):
    try:
        state = read(f"/proc/{pid}/stat").rsplit(b")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in (b"Z", b"X")


KILL = signal.SIGKILL
STOP = signal.SIGSTOP
