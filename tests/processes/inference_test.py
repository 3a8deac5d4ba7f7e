"""//samples:pipeline_inference on threads and processes."""

import os
import re

from tests.checks import xml_main
from tests.processes import sample

BINARY = os.path.abspath(os.path.join("samples", "pipeline_inference"))


class Inference(sample.InFolder):

    def predict(self, *flags, before=()):
        done = self.run_program([*before, BINARY, *flags])
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_every_rank_prints_the_logits_of_one_device(self):
        one = self.predict("--stages=1", "--generate=16")
        lines = one.splitlines()
        self.assertEqual(lines[0], "logits of 8 sequences:")
        for line in lines[1:9]:
            # All rows of the table are ones, so that all columns are equal.
            self.assertEqual(len(line.split()), 32)
            self.assertEqual(len(set(line.split())), 1)
            self.assertNotEqual(float(line.split()[0]), 0.0)
        self.assertEqual(lines[9:], [
            f"sequence {row} goes on with" + " 0" * 16 for row in range(8)
        ])
        self.assertEqual(self.predict("--generate=16"), one)
        for transport in ("shm", "mpi"):
            said = self.predict("--generate=16", f"--transport={transport}",
                                before=[*sample.MPIRUN, "-n", "4"])
            for rank in range(4):
                self.assertEqual(sample.lines_of(rank, said), one,
                                 f"rank {rank} over {transport}")

    def test_another_seed_gives_other_logits(self):
        self.assertNotEqual(self.predict("--seed=2"), self.predict())

    def test_refusals(self):
        for flag, message in (
            ("--stages=5", "the network has 4 cells; give 1 to 4"),
            ("--batch_size=6", "batch 6 does not divide into 4 micro-batches"),
            ("--batch_size=0", "cannot be; give at least 1"),
            ("--generate=-1", "cannot be; give at least 0"),
        ):
            done = self.run_program([BINARY, flag])
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, re.escape(message))


if __name__ == "__main__":
    xml_main.main()
