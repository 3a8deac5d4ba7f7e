"""The wheel: what is in it, that pip takes it, and which oneDNN its libraries find beside MindSpore's."""

import base64
import csv
import glob
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from tests.checks import xml_main

[WHEEL] = glob.glob(os.path.abspath("plugin/mindspore/python/*.whl"))
SITE_PACKAGES = os.path.dirname(os.path.realpath("external/mindspore/site-packages/PLACE"))

LOADS_BOTH = """
import sys
import numpy
import mindspore
from mindspore import nn
nn.Dense(3, 4)(mindspore.Tensor(numpy.ones((2, 3), numpy.float32))).asnumpy()  # MindSpore's kernels are there
mindspore.graph.register_custom_backend("pipeloom", sys.argv[1])
"""


def dynamic_section(path):
    return subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout


class WheelTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="pl", dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def unpack(self):
        with zipfile.ZipFile(WHEEL) as wheel:
            wheel.extractall(self.folder)

    def run_program(self, *command, **variables):
        # Bazel's own PYTHONPATH would not do: this workspace, too, is named pipeloom.
        environment = {**os.environ, "HOME": self.folder, "PYTHONPATH": "", **variables}
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              cwd=self.folder, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_record_is_true(self):
        with zipfile.ZipFile(WHEEL) as wheel:
            names = wheel.namelist()
            record = [name for name in names if name.endswith(".dist-info/RECORD")]
            self.assertEqual(len(record), 1)
            rows = list(csv.reader(io.StringIO(wheel.read(record[0]).decode())))
            self.assertEqual(sorted(row[0] for row in rows), sorted(names))
            for name, digest, size in rows:
                if name != record[0]:
                    data = wheel.read(name)
                    expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                    self.assertEqual((digest, int(size)), ("sha256=" + expected, len(data)), name)
        for name in ("launcher.py", "lib/libpipeloom.so", "lib/libpipeloom_mindspore.so", "lib/libdnnl_pipeloom.so.3"):
            self.assertIn("pipeloom/" + name, names)
        self.assertFalse([name for name in names if "test" in name or name.endswith("/libdnnl.so.3")])

    def test_pip_installs_it(self):
        self.run_program(sys.executable, "-m", "venv", "venv")
        self.run_program("venv/bin/python", "-m", "pip", "install", "--no-index", "--no-deps", WHEEL)
        self.assertRegex(self.run_program("venv/bin/python", "-m", "pip", "show", "pipeloom"),
                         r"Version: [\d.]+\n[^$]*Requires: mindspore, numpy\n")
        self.assertIn("usage: pipeloom-run", self.run_program("venv/bin/pipeloom-run", "--help"))

    def test_libraries_find_each_other(self):
        self.unpack()
        needed = dynamic_section(self.path("pipeloom", "lib", "libpipeloom.so"))
        self.assertIn("(NEEDED)             Shared library: [libdnnl_pipeloom.so.3]", needed)
        self.assertNotIn("[libdnnl.so.3]", needed)
        self.assertRegex(needed, r"\((RUN|R)PATH\).*\[\$ORIGIN\]")
        self.assertIn("[libdnnl_pipeloom.so.3]",
                      dynamic_section(self.path("pipeloom", "lib", "libdnnl_pipeloom.so.3")))

    def test_our_onednn_is_ours_and_mindspores_is_its_own(self):
        self.unpack()
        library = self.path("pipeloom", "lib", "libpipeloom_mindspore.so")
        with open(self.path("loads_both.py"), "w", encoding="utf-8") as script:
            script.write(LOADS_BOTH)
        self.run_program(sys.executable, "loads_both.py", library, PYTHONPATH=SITE_PACKAGES, LD_BIND_NOW="1",
                         LD_DEBUG="bindings", LD_DEBUG_OUTPUT=self.path("bindings"))
        found = {}
        for name in glob.glob(self.path("bindings.*")):
            with open(name, encoding="utf-8", errors="replace") as file:
                for user, place in re.findall(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `dnnl_",
                                              file.read()):
                    found.setdefault(os.path.basename(user), set()).add(os.path.relpath(os.path.realpath(place)))
        ours = os.path.relpath(os.path.realpath(self.path("pipeloom", "lib", "libdnnl_pipeloom.so.3")))
        self.assertEqual(found["libpipeloom.so"], {ours})
        self.assertEqual(found["libdnnl_pipeloom.so.3"], {ours})
        theirs = os.path.relpath(os.path.join(SITE_PACKAGES, "mindspore", "lib", "libdnnl.so.3"))
        self.assertEqual(found["libmindspore_ops_cpu.so"], {theirs})


if __name__ == "__main__":
    xml_main.main()
