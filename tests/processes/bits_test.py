"""Ranks as processes give the losses and weights of threads, bit for bit."""

import itertools
import os
import socket
import subprocess

from tests.checks import xml_main
from tests.processes import sample

PROCESSES = ("shm", "mpi")


class Bits(sample.InFolder):

    def train(self, *flags, before=(), **variables):
        """Returns the bytes of the losses and weights, and what was printed."""
        files = [self.path("losses"), self.path("weights")]
        command = [
            *before, sample.BINARY, "--steps=3", "--losses_out=" + files[0],
            "--weights_out=" + files[1], *flags
        ]
        done = self.run_program(command, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return b"".join(map(sample.read, files)), done.stdout

    def test_every_layout(self):
        one, said = self.train("--stages=1")
        accuracy = said.splitlines()[-1]
        self.assertIn("test accuracy is", accuracy)
        for transport, stages, schedule in itertools.product(
                PROCESSES, (1, 2, 3, 4), ("gpipe", "1f1b", "interleaved")):
            with self.subTest(transport=transport, stages=stages,
                              schedule=schedule):
                bits, said = self.train(f"--transport={transport}",
                                        f"--stages={stages}",
                                        f"--schedule={schedule}")
                self.assertEqual(bits, one)
                # Rank 0 alone says anything, and has what the last stage made.
                self.assertEqual(said.count("epoch: 0 step: 0,"), 1)
                self.assertEqual(said.splitlines()[-1], accuracy)

    def test_adam(self):
        one, _ = self.train("--stages=1", "--optimizer=adam")
        for transport in PROCESSES:
            self.assertEqual(self.train(f"--transport={transport}", "--stages=3",
                                        "--optimizer=adam")[0], one)

    def test_prints_what_the_first_layer_makes(self):
        one, quiet = self.train("--stages=1")
        self.assertNotIn("out is:", quiet)
        for transport in ("threads", *PROCESSES):
            bits, said = self.train(f"--transport={transport}",
                                    "--print_activations")
            self.assertEqual(bits, one)
            # Three steps and 32 batches of test digits, of four micro-batches.
            self.assertEqual(said.count("out is:"), (3 + 32) * 4)
            self.assertEqual(
                said.count("Tensor(shape=[8, 512], dtype=Float32, value="),
                (3 + 32) * 4)

    def test_auto_takes_the_processes_of_mpirun(self):
        one, _ = self.train("--stages=1")
        bits, said = self.train("--stages=3",
                                before=[*sample.MPIRUN, "-n", "3"])
        self.assertEqual(bits, one)
        self.assertEqual(said.count("test accuracy"), 1)

    def test_other_launchers_give_rank_size_and_meeting_place(self):
        one, _ = self.train("--stages=1")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        for place in ("file:" + self.path("meet"), f"tcp://127.0.0.1:{port}"):
            self.train_by_hand(2, place)
            bits = sample.read(self.path("losses")) + sample.read(
                self.path("weights"))
            self.assertEqual(bits, one, place)

    def train_by_hand(self, size, place):
        ranks = []
        for rank in range(size):
            ranks.append(
                subprocess.Popen(
                    [
                        sample.BINARY, "--steps=3", f"--stages={size}",
                        "--losses_out=" + self.path("losses"),
                        "--weights_out=" + self.path("weights")
                    ], env=self.environment(PIPELOOM_RANK=str(rank),
                                            PIPELOOM_WORLD_SIZE=str(size),
                                            PIPELOOM_RENDEZVOUS=place),
                    stdout=subprocess.DEVNULL))
        for process in ranks:
            self.assertEqual(process.wait(timeout=100), 0)

    def test_mpi_needs_neither_shared_memory_nor_a_shared_folder(self):
        one, _ = self.train("--stages=1")
        command = [*sample.MPIRUN, "--mca", "btl", "tcp,self"]
        for rank in range(2):
            os.mkdir(self.path(f"rank{rank}"))
            command += [
                *([":"] if rank else []), "-n", "1", "-wdir",
                self.path(f"rank{rank}"), sample.BINARY, "--transport=mpi",
                "--steps=3", "--losses_out=losses", "--weights_out=weights"
            ]
        done = self.run_program(command)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            sample.read(self.path("rank0", "losses")) +
            sample.read(self.path("rank0", "weights")), one)
        self.assertEqual(os.listdir(self.path("rank1")), [])


if __name__ == "__main__":
    xml_main.main()
