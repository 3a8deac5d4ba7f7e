"""Losses of MindSpore's scripts under pipeloom-run, against those of the same script on one stock process."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from tests.checks import xml_main

[WHEEL] = glob.glob(os.path.abspath("plugin/mindspore/python/*.whl"))
SITE_PACKAGES = os.path.dirname(os.path.realpath("external/mindspore/site-packages/PLACE"))
SCRIPT = os.path.abspath(os.path.join("tests", "mindspore", "oracle_script.py"))
STEPS = 30


class OracleTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="pl", dir="/tmp")  # short, for mpirun's sockets
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        with zipfile.ZipFile(WHEEL) as wheel:
            wheel.extractall(os.path.join(self.folder, "wheel"))

    def losses(self, network, optimizer, stages, *flags):
        """As they stand in the file, a line a step."""
        out = os.path.join(self.folder, f"losses_{stages}.txt")
        paths = [SITE_PACKAGES]
        command = [sys.executable, SCRIPT]
        if stages > 1:
            wheel = os.path.join(self.folder, "wheel")
            paths.insert(0, wheel)
            command = [sys.executable, os.path.join(wheel, "pipeloom", "launcher.py"), "-n", str(stages), SCRIPT]
        environment = {**os.environ, "HOME": self.folder, "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command + [network, optimizer, str(stages), out, *flags], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, cwd=self.folder, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        with open(out, encoding="utf-8") as file:
            return file.read().split()

    def check(self, network, optimizer, *flags):
        stock = self.losses(network, optimizer, 1, *flags)
        two = self.losses(network, optimizer, 2, *flags)
        self.assertEqual(len(stock), STEPS)
        self.assertEqual(len(set(stock)), STEPS)  # it does train
        self.assertEqual(len(two), STEPS)
        for step, (wanted, given) in enumerate(zip(map(float, stock), map(float, two))):
            self.assertLess(abs(given - wanted), 1e-5 * abs(wanted), f"step {step}: {given} and, stock, {wanted}")
        self.assertEqual(self.losses(network, optimizer, 4, *flags), two)  # to the bit

    def test_mlp(self):
        self.check("mlp", "sgd")

    def test_layer_norm_and_a_rate_that_decays(self):
        self.check("norm", "decaying")

    def test_text_classifier(self):
        self.check("classifier", "momentum")

    def test_gpt_with_a_tied_table(self):
        self.check("gpt", "adam")

    def test_weight_decay(self):
        self.check("mlp", "adamw")

    def test_l2_outside_the_pipeline_a_loss_scale_and_a_clipped_norm(self):
        self.check("mlp", "sgd", "--regularized")


if __name__ == "__main__":
    xml_main.main()
