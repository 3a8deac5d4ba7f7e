"""What `bazel run //plugin/mindspore:venv` makes, with a small package in MindSpore's place."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from tests.checks import xml_main

MAKE_VENV = os.path.abspath("plugin/mindspore/python/make_venv.py")
[WHEEL] = glob.glob(os.path.abspath("plugin/mindspore/python/*.whl"))


class VenvTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="pl", dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.makedirs(self.path("a checkout"))
        self.write("unpacked/host/__init__.py", "import sys\ndef main():\n    print(sys.argv[1:])\n    return 3\n")
        self.write("unpacked/host/data/of.txt", "data")
        self.write("unpacked/host-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: host\nVersion: 1.0\n")
        self.write("unpacked/host-1.0.dist-info/entry_points.txt", "[console_scripts]\nhostrun = host:main\n")
        self.write("unpacked/PLACE", "host==1.0\n")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def venv(self, *names):
        return self.path("a checkout", ".venv", *names)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def run_program(self, *command, status=0, **variables):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              env={**os.environ, "HOME": self.folder, "PYTHONPATH": "", **variables})
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def make(self):
        return self.run_program(sys.executable, MAKE_VENV, self.path("unpacked", "PLACE"), WHEEL,
                                BUILD_WORKSPACE_DIRECTORY=self.path("a checkout"))

    def test_makes_and_refreshes(self):
        self.assertIn("making ", self.make())
        packages = self.run_program(self.venv("bin", "python"), "-m", "pip", "list", "--format=freeze")
        self.assertIn("host==1.0\n", packages)
        self.assertRegex(packages, r"(?m)^pipeloom==")
        self.assertEqual(self.run_program(self.venv("bin", "hostrun"), "two words", status=3), "['two words']\n")
        self.assertIn("usage: pipeloom-run", self.run_program(self.venv("bin", "pipeloom-run"), "--help"))
        [data] = glob.glob(self.venv("lib", "python*", "site-packages", "host", "data", "of.txt"))
        self.assertTrue(os.path.samefile(data, self.path("unpacked", "host", "data", "of.txt")))

        self.write("a checkout/.venv/own.txt", "kept")
        os.remove(self.venv("bin", "pipeloom-run"))
        self.assertNotIn("making ", self.make())
        self.assertTrue(os.path.exists(self.venv("own.txt")))
        self.assertTrue(os.path.exists(self.venv("bin", "pipeloom-run")))

        self.write("unpacked/PLACE", "host==1.0\nanother==2.0\n")
        self.assertIn("making ", self.make())
        self.assertFalse(os.path.exists(self.venv("own.txt")))

    def test_is_for_bazel_run(self):
        output = self.run_program(sys.executable, MAKE_VENV, self.path("unpacked", "PLACE"), WHEEL, status=1)
        self.assertIn("Usage: make_venv.py", output)


if __name__ == "__main__":
    xml_main.main()
