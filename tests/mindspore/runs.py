"""Starts scripts as users do, in a folder of their own."""

import os
import shutil
import subprocess
import tempfile
import unittest

RUNFILES = os.getcwd()
SAMPLES = os.path.join(RUNFILES, "samples", "mindspore")
PYTHON = "/usr/bin/python3"
LIMIT = 280


def site_packages():
    return os.path.dirname(os.path.realpath(os.path.join("external", "mindspore", "site-packages", "PLACE")))


class RunsTest(unittest.TestCase):
    """A test case with a folder, for logs and files."""

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="pl", dir="/tmp")  # short, for mpirun's sockets
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def run_command(self, *command, **environment):
        """Runs it to its end; its exit status and output."""
        variables = dict(os.environ, BUILD_WORKING_DIRECTORY=self.folder, TMPDIR=self.folder, **environment)
        done = subprocess.run(command, cwd=self.folder, env=variables, timeout=LIMIT, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        return done.returncode, done.stdout

    def run_sample(self, target, *arguments):
        """A target of samples/mindspore, which is to end well; its output."""
        status, output = self.run_command(os.path.join(SAMPLES, target), *arguments)
        self.assertEqual(status, 0, output[-3000:])
        return output

    def run_stock(self, script, *arguments):
        """The same script on stock MindSpore; its output."""
        status, output = self.run_command(PYTHON, os.path.join(RUNFILES, "tests", "mindspore", "stock.py"),
                                          os.path.join(SAMPLES, script), *arguments,
                                          PYTHONPATH=os.pathsep.join([RUNFILES, site_packages()]))
        self.assertEqual(status, 0, output[-3000:])
        return output

    def losses(self, name):
        return [float(line) for line in self.read(name).splitlines()]


def launch(ranks, script, *arguments):
    """The command that runs a script's text as ranks; logs are in log_output."""
    return [PYTHON, os.path.join(RUNFILES, "plugin", "mindspore", "python", "pipeloom", "launcher.py"), "-n",
            str(ranks), script, *arguments]


def package_path():
    """PYTHONPATH with the package and MindSpore."""
    return os.pathsep.join([os.path.join(RUNFILES, "plugin", "mindspore", "python"), site_packages()])
