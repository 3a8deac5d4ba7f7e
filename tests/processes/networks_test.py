"""An MLP with a skip over two layers, and an embedding network with dropout and
a tied table: the same bits over stages, schedules and transports. All rows of
their tables differ, as those of the sample pipeline_inference do not."""

import glob
import itertools
import os

from tests.checks import xml_main
from tests.processes import sample

BINARY = os.path.abspath(os.path.join("tests", "processes", "networks"))


class Networks(sample.InFolder):

    def train(self, **flags):
        files = [self.path("losses"), self.path("weights")]
        done = self.run_program([
            BINARY, "--losses_out=" + files[0], "--weights_out=" + files[1],
            *(f"--{name}={value}" for name, value in flags.items())
        ])
        self.assertEqual(done.returncode, 0, done.stderr)
        return b"".join(map(sample.read, files))

    def check(self, network):
        one = self.train(network=network)
        for transport, stages, schedule in itertools.product(
                ("threads", "shm", "mpi"), (1, 2, 3, 4),
                ("gpipe", "1f1b", "interleaved")):
            with self.subTest(transport=transport, stages=stages,
                              schedule=schedule):
                self.assertEqual(
                    self.train(network=network, transport=transport,
                               stages=stages, schedule=schedule), one)

    def test_skip(self):
        self.check("skip")

    def test_tied(self):
        self.check("tied")

    def predict(self, network, **flags):
        """What each rank gets, in the order of the ranks."""
        logits = self.path("logits")
        done = self.run_program([
            BINARY, f"--network={network}", "--logits_out=" + logits,
            *(f"--{name}={value}" for name, value in flags.items())
        ])
        self.assertEqual(done.returncode, 0, done.stderr)
        files = sorted(glob.glob(logits + ".*"))
        said = [sample.read(file).decode() for file in files]
        for file in files:
            os.remove(file)
        return said

    def test_every_rank_gets_the_logits_of_one_device(self):
        for network in ("skip", "tied"):
            one, = self.predict(network)
            rows = one.splitlines()
            # Of four batches of twelve rows, with eleven different inputs.
            self.assertEqual(len(rows), 48)
            self.assertGreater(len(set(rows)), 8)
            self.assertEqual(len(set(rows[0].split())), 11)
            for transport, stages in itertools.product(("shm", "mpi"), (2, 4)):
                with self.subTest(network=network, transport=transport,
                                  stages=stages):
                    self.assertEqual(
                        self.predict(network, transport=transport,
                                     stages=stages), [one] * stages)


if __name__ == "__main__":
    xml_main.main()
