"""All C++ files of the tree are formatted as .clang-format says."""

import os
import shutil
import subprocess
import unittest

from tests.checks import source_tree
from tests.checks import xml_main

CLANG_FORMAT = shutil.which("clang-format")


def unformatted(paths):
    """Returns clang-format's complaints on files, below the root or not."""
    command = [CLANG_FORMAT, "--dry-run", "--Werror", "--style=file"] + paths
    result = subprocess.run(command, cwd=source_tree.root(), text=True,
                            stderr=subprocess.PIPE, check=False)
    if result.returncode != 0 and not result.stderr:
        return f"clang-format ended with {result.returncode}"
    return result.stderr


@unittest.skipUnless(
    CLANG_FORMAT, "clang-format is not installed (Debian: clang-format)")
class ClangFormat(unittest.TestCase):

    def test_notices_a_badly_formatted_file(self):
        result = subprocess.run(
            [CLANG_FORMAT, "--dry-run", "--Werror", "--style=file",
             "--assume-filename=kernels/base/x.cc"],
            cwd=source_tree.root(), input="int  main( ){return 0 ;}\n",
            text=True, capture_output=True, check=False)
        self.assertNotEqual(result.returncode, 0)

    def test_tree(self):
        files = source_tree.cpp_files((".h", ".cc"))
        self.assertGreater(len(files), 0, "no C++ file found in " +
                           source_tree.root())
        complaints = unformatted(files)
        names = sorted({line.split(":")[0] for line in complaints.splitlines()
                        if ": error:" in line})
        self.assertFalse(names, "\nRun: clang-format -i " + " ".join(names))
        self.assertEqual(complaints, "")


if __name__ == "__main__":
    xml_main.main()
