"""All ways into the backend give the same bits, and the losses of stock MindSpore."""

import os

from tests.checks import xml_main
from tests.mindspore import runs

SCRIPT = os.path.join(runs.RUNFILES, "tests", "mindspore", "ways_script.py")
WAYS = ("model", "lazy", "context", "cell", "jit", "config")


class WaysTest(runs.RunsTest):

    def train(self, way):
        path = runs.package_path() if way != "stock" else runs.site_packages()
        status, output = self.run_command(runs.PYTHON, SCRIPT, way, self.path(way), PYTHONPATH=path)
        self.assertEqual(status, 0, output[-3000:])
        return self.losses(way)

    def test_each_way(self):
        stock = self.train("stock")
        self.assertEqual(len(stock), 6)
        losses = {way: self.train(way) for way in WAYS}
        for way in WAYS:
            with self.subTest(way):
                self.assertEqual(losses[way], losses["model"])
        for loss, expected in zip(losses["model"], stock, strict=True):
            self.assertLess(abs(loss - expected), 1e-5 * expected)


if __name__ == "__main__":
    xml_main.main()
