"""An MLP with a skip over two layers, and an embedding network with dropout and
a tied table: the same bits over stages, schedules and transports."""

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


if __name__ == "__main__":
    xml_main.main()
