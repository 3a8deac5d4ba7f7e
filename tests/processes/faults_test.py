"""What goes wrong in one rank ends all, and each says what and where."""

import os
import re
import time

from tests.checks import xml_main
from tests.processes import sample

PROCESSES = ("shm", "mpi")
DIGITS = os.path.abspath(os.path.join("third_party", "mnist_digits"))


class Refusals(sample.InFolder):
    """Every rank refuses, before the first step."""

    def expect_on_all(self, ranks, command, message):
        done = self.run_program(command)
        output = done.stdout + done.stderr
        self.assertNotEqual(done.returncode, 0, output)
        self.assertNotIn("epoch:", output)
        for rank in range(ranks):
            self.assertRegex(sample.lines_of(rank, output), message,
                             f"rank {rank}\n{output}")

    def test_a_world_that_does_not_match_the_stages(self):
        for transport in PROCESSES:
            self.expect_on_all(
                3, [
                    *sample.MPIRUN, "-n", "3", sample.BINARY, "--stages=2",
                    f"--transport={transport}"
                ], "the pipeline has 2 stages, but 3 processes were started")

    def test_different_flags(self):
        for transport in PROCESSES:
            program = [sample.BINARY, f"--transport={transport}"]
            self.expect_on_all(2, [
                *sample.MPIRUN, "-n", "1", *program, "--micro_batches=4", ":",
                "-n", "1", *program, "--micro_batches=8"
            ], "rank 1 has `micro_batches=8`, rank 0 has `micro_batches=4`")

    def test_a_batch_that_does_not_divide(self):
        for transport in PROCESSES:
            self.expect_on_all(2, [
                *sample.MPIRUN, "-n", "2", sample.BINARY, "--batch_size=33",
                f"--transport={transport}"
            ], "batch 33 does not divide into 4 micro-batches")

    def test_threads_in_several_processes(self):
        self.expect_on_all(2, [
            *sample.MPIRUN, "-n", "2", sample.BINARY, "--transport=threads"
        ], "--transport=threads runs all stages in one process")

    def test_no_mpirun(self):
        done = self.run_program([sample.BINARY, "--transport=mpi"],
                                PATH="/nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("mpirun, which is not there; install", done.stderr)


class Faults(sample.InFolder):
    """In the middle of training, on three ranks."""

    def start(self, transport, *flags):
        return sample.Running(self, [
            *sample.MPIRUN, "-n", "3", sample.BINARY, "--stages=3",
            "--epochs=100000", f"--transport={transport}", *flags
        ])

    def expect_place(self, rank, output):
        """The rank says which it is, its action and the channel."""
        said = sample.lines_of(rank, output)
        self.assertRegex(
            said, rf"mnist_pipeline: rank {rank}: step \d+, rank {rank}, "
            r"(\dF\d|\dBW?\d|\dW\d|\d(SEND|RECV)_[FB]\d|REDUCE|EXCHANGE|STEP)|"
            rf"rank {rank}, the beginning of step \d+", output)
        self.assertRegex(said, r"channel '[^']+' \(rank \d -> rank \d, tag \d+",
                         output)

    def test_exception_on_one_rank(self):
        folder = self.digits_with_a_wrong_label()
        for transport in PROCESSES:
            with self.subTest(transport=transport):
                running = self.start(transport, "--data_dir=" + folder)
                code, output = running.end(60)
                self.assertNotEqual(code, 0)
                for rank in range(3):
                    self.assertRegex(
                        sample.lines_of(rank, output),
                        r"step \d+, rank 2, 2F\d, cell _loss_fn, .*77", output)
                self.expect_place(0, output)
                self.expect_place(1, output)

    def digits_with_a_wrong_label(self):
        for part in ("train", "test"):
            os.makedirs(self.path("digits", part))
        for name in ("train/train-images-idx3-ubyte",
                     "train/train-labels-idx1-ubyte",
                     "test/t10k-images-idx3-ubyte",
                     "test/t10k-labels-idx1-ubyte"):
            data = bytearray(sample.read(os.path.join(DIGITS, name)))
            if name.startswith("train/train-labels"):
                data[1000] = 77
            with open(self.path("digits", name), "wb") as file:
                file.write(data)
        return self.path("digits")

    def test_kill_of_one_rank(self):
        for transport, victim in (("shm", 1), ("shm", 0), ("mpi", 0),
                                  ("mpi", 1), ("mpi", 2)):
            with self.subTest(transport=transport, victim=victim):
                running = self.start(transport)
                running.wait_for("step: 10,")
                others = [running.process(rank) for rank in range(3)
                          if rank != victim]
                running.send(victim, sample.KILL)
                begin = time.monotonic()
                code, output = running.end(30)
                while any(map(sample.is_running, others)):
                    self.assertLess(time.monotonic() - begin, 10, output)
                    time.sleep(0.05)
                self.assertLess(time.monotonic() - begin, 10, output)
                self.assertNotEqual(code, 0)
                self.assertRegex(
                    output, rf"rank {victim} with PID .* exited on signal 9")
                for rank in range(3):
                    if rank != victim:
                        self.expect_place(rank, output)

    def test_kill_of_mpirun(self):
        """It takes its ranks with it, also those that do not use MPI."""
        for transport in PROCESSES:
            with self.subTest(transport=transport):
                running = self.start(transport)
                running.wait_for("step: 10,")
                ranks = [running.process(rank) for rank in range(3)]
                running.kill_mpirun()
                begin = time.monotonic()
                while any(map(sample.is_running, ranks)):
                    self.assertLess(time.monotonic() - begin, 10)
                    time.sleep(0.05)

    def test_frozen_process(self):
        for transport in PROCESSES:
            with self.subTest(transport=transport):
                running = self.start(transport, "--deadline=2")
                running.wait_for("step: 10,")
                frozen = running.send(1, sample.STOP)
                code, output = running.end(30)
                self.assertNotEqual(code, 0)
                self.assertFalse(sample.is_running(frozen))
                for rank in (0, 2):
                    self.expect_place(rank, output)
                self.assertRegex(output, r"waited (1\.9|2\.)\d+ seconds for .*; see what kept rank [01]")
                # Where rank 2 had begun to wait for rank 0 before that waited for the frozen one, its wait ends first.
                if "see what kept rank 1" not in output:
                    self.assertRegex(output, r"rank 0, .*channel '[^']*' \(rank 1 -> rank 0")


if __name__ == "__main__":
    xml_main.main()
