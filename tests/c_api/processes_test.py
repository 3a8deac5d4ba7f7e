"""A host with a process for each rank: the C program, and Python."""

import os
import subprocess
import sys
import unittest

from tests.checks import xml_main
from tests.processes import sample

BINARY = os.path.abspath(os.path.join("tests", "c_api", "ranks"))
LIBRARY = os.path.abspath(os.path.join("plugin", "c_api", "libpipeloom.so"))


class Processes(sample.InFolder):

    def run_ranks(self, mode):
        """Starts both ranks as a launcher of its own would."""
        ranks = [
            subprocess.Popen(
                [BINARY, mode], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, env=self.environment(
                    PIPELOOM_RANK=str(rank), PIPELOOM_WORLD_SIZE="2",
                    PIPELOOM_RENDEZVOUS=f"file:{self.path(mode)}"))
            for rank in range(2)
        ]
        done = []
        for rank in ranks:
            self.addCleanup(rank.kill)
            stdout, stderr = rank.communicate(timeout=60)
            done.append((rank.returncode, stdout, stderr))
        return done

    def of_threads(self):
        done = self.run_program([BINARY, "train"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("loss "), 3)
        return done.stdout

    def test_ranks_of_a_launcher_train_as_threads_do(self):
        threads = self.of_threads()
        for code, stdout, stderr in self.run_ranks("train"):
            self.assertEqual(code, 0, stderr)
            self.assertEqual(stdout, threads)

    def test_ranks_under_mpirun_train_as_threads_do(self):
        threads = self.of_threads()
        for transport in ("shm", "mpi"):
            done = self.run_program(
                [*sample.MPIRUN, "-n", "2", BINARY, "train", transport])
            self.assertEqual(done.returncode, 0, done.stderr)
            for rank in range(2):
                self.assertEqual(sample.lines_of(rank, done.stdout), threads)

    def test_ranks_whose_processes_are_pythons(self):
        host = [
            sys.executable,
            os.path.join("tests", "c_api", "python_host.py"), LIBRARY
        ]
        for transport in ("shm", "mpi"):
            done = self.run_program(
                [*sample.MPIRUN, "-n", "2", *host, transport])
            self.assertEqual(done.returncode, 0, done.stderr)
            for rank in range(2):
                self.assertEqual(sample.lines_of(rank, done.stdout),
                                 f"rank {rank}: y = -10.0\n")

    def expect_ends(self, mode, *messages):
        """Both ranks end with 1, and each says its message."""
        for (code, stdout, stderr), message in zip(
                self.run_ranks(mode), messages, strict=True):
            self.assertEqual(code, 1, stdout + stderr)
            self.assertIn(message, stderr)

    def test_a_host_that_fails_tells_the_others(self):
        self.expect_ends("host_fails",
                         "rank 1, its host: ValueError in line 7",
                         "ranks: rank 1: ValueError in line 7")

    def test_a_host_that_fails_before_its_session_tells_the_others(self):
        self.expect_ends("no_session", "ImportError",
                         "ranks: rank 1: ImportError")

    def test_a_callback_that_fails_ends_all(self):
        place = ("step 0, rank 0, 0F0, cell net.layer1, host_relu %h: "
                 "the host's kernel: the device is on fire")
        self.expect_ends("callback_fails", "ranks: rank 0: " + place, place)

    def test_a_host_that_refuses_in_place_of_a_load(self):
        both = "rank 1 refuses: control flow"
        self.expect_ends("refuses", both, both)

    def test_flags_that_differ(self):
        both = "rank 1 has `seed=7`, rank 0 has `seed=1`"
        self.expect_ends("other_flags", both, both)

    def test_a_host_that_fails_under_mpirun(self):
        for transport in ("shm", "mpi"):
            done = self.run_program([
                *sample.MPIRUN, "-n", "2", BINARY, "host_fails", transport])
            self.assertNotEqual(done.returncode, 0)
            said = sample.lines_of(0, done.stderr)
            self.assertIn("rank 1, its host: ValueError in line 7", said)


if __name__ == "__main__":
    xml_main.main()
