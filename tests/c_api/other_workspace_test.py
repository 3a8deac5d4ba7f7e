"""A Bazel workspace of its own links what is installed, and runs."""

import os
import shutil
import subprocess
import unittest

from tests.checks import xml_main
from tests.processes import sample

HERE = os.path.join("tests", "c_api", "other_workspace")
# Nothing may be downloaded, nothing stays behind, and a sandbox within a
# sandbox is not to be had everywhere.
BAZEL = ["bazel", "--nohome_rc", "--batch"]
FLAGS = [
    "--experimental_repository_disable_download", "--spawn_strategy=local",
    "--noshow_progress"
]


class OtherWorkspace(sample.InFolder):

    def copy(self, source, *target):
        target = self.path(*target)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)

    def lay_out(self):
        installed = os.path.join("plugin", "c_api", "installed")
        for name in ("include/pipeloom.h", "lib/libpipeloom.so",
                     "lib/libdnnl.so.3"):
            self.copy(os.path.join(installed, name), "installed", name)
        rules = os.path.join("rules_cc", "repository.bzl")
        self.copy(os.path.join("third_party", rules), "workspace", rules)
        self.copy(os.devnull, "workspace", "rules_cc", "BUILD")
        for name in ("BUILD.other", "WORKSPACE.other", "forward.c",
                     "pipeloom.BUILD"):
            self.copy(os.path.join(HERE, name), "workspace",
                      name.replace(".other", ""))

    def test_the_library_shows_its_own_names_only(self):
        self.lay_out()
        done = self.run_program([
            "nm", "--dynamic", "--defined-only", "--format=posix",
            self.path("installed", "lib", "libpipeloom.so")])
        names = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertIn("pipeloom_session_run", names)
        others = [n for n in names if not n.startswith("pipeloom_")]
        self.assertEqual(others, [])

    @unittest.skipUnless(shutil.which("bazel"), "bazel is not on the PATH")
    def test_builds_and_runs(self):
        self.lay_out()
        done = subprocess.run(
            [*BAZEL, f"--output_user_root={self.path('root')}", "run", *FLAGS,
             "//:forward"],
            cwd=self.path("workspace"), capture_output=True, text=True,
            timeout=280, check=False, env=self.environment(USER="other"))
        self.assertEqual(done.returncode, 0, done.stderr)
        # [1 1; 2 0] times [1 2; -3 4], and what is below 0 becomes 0.
        self.assertEqual(done.stdout, "y = 0 6 2 4\n", done.stderr)


if __name__ == "__main__":
    xml_main.main()
