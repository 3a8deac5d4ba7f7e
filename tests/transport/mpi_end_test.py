"""How processes over MPI end: well, after a failure, and when one is stuck."""

import os
import subprocess
import tempfile
import time
import unittest

from tests.checks import xml_main

BINARY = os.path.abspath(os.path.join("tests", "transport", "mpi_rank"))
# What a failed run may take, beside its 5 seconds of deadline and the start.
PROMPTLY = 10
LOADED_MACHINE = 20


class MpiEndTest(unittest.TestCase):

    def run_ranks(self, event, *options):
        """Returns (exit code, output) of three ranks."""
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            environment = dict(os.environ, HOME=folder, TMPDIR=folder,
                               OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
            start = time.monotonic()
            ended = subprocess.run(
                ["mpirun", "--oversubscribe", "--bind-to", "none", *options, "-n", "3", BINARY, event],
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
        self.assertLess(time.monotonic() - start, 5 + PROMPTLY + LOADED_MACHINE, ended.stdout)
        return ended.returncode, ended.stdout

    def assert_lines(self, output, lines):
        for line in lines:
            self.assertIn(line, output)

    def test_all_end_well(self):
        for options in ((), ("--mca", "btl", "tcp,self")):
            code, output = self.run_ranks("nothing", *options)
            self.assertEqual(code, 0, output)
            self.assert_lines(output, [f"rank {rank} ends with OK" for rank in range(3)])
            self.assertEqual(output.count("cannot start again: FAILED_PRECONDITION: MPI was finalized"), 3, output)

    def test_failure_reaches_all_ranks_before_the_end(self):
        for options in ((), ("--mca", "btl", "tcp,self")):
            code, output = self.run_ranks("fails", *options)
            self.assertEqual(code, 3, output)
            self.assert_lines(output, [
                f"rank {rank} ends with DATA_LOSS: rank 1: label 12 is out of range" for rank in range(3)])

    def test_rank_that_is_stopped(self):
        code, output = self.run_ranks("stops")
        self.assertEqual(code, 3, output)
        self.assert_lines(output, ["rank 0 ends with DEADLINE_EXCEEDED: rank ",
                                   "rank 2 ends with DEADLINE_EXCEEDED: rank ", "see what kept rank 1"])

    def test_rank_that_is_stopped_before_its_start(self):
        code, output = self.run_ranks("late")
        self.assertNotEqual(code, 0, output)
        self.assertRegex(output, "MPI_Init did not return before its deadline|no answer at the start from rank 1")

    def test_rank_that_comes_to_its_end_alone(self):
        code, output = self.run_ranks("leaves")
        self.assertEqual(code, 3, output)
        for rank in (0, 2):
            self.assertRegex(output, f"rank {rank} ends with DEADLINE_EXCEEDED: rank [02]: channel 'h' .*, message 10")


if __name__ == "__main__":
    xml_main.main()
