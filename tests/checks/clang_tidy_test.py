"""clang-tidy, with the allow-list of .clang-tidy, finds nothing in the tree."""

import concurrent.futures
import os
import shutil
import subprocess
import unittest

from tests.checks import source_tree
from tests.checks import xml_main

CLANG_TIDY = shutil.which("clang-tidy")

# oneDNN's headers stand beside its library, whose real place the link in the
# runfiles tells.
ONEDNN = os.path.join(os.environ.get("TEST_SRCDIR", "."), "onednn", "lib")
SYSTEM_INCLUDES = [
    os.path.normpath(os.path.join(
        os.path.dirname(os.path.realpath(os.path.join(ONEDNN, library))),
        "..", "include"))
    for library in (os.listdir(ONEDNN) if os.path.isdir(ONEDNN) else [])
]


def complaints(path):
    """Returns what clang-tidy says of one file; empty if nothing."""
    result = subprocess.run(
        [CLANG_TIDY, "--quiet", path, "--", "-std=c++17", "-I."] +
        ["-isystem" + directory for directory in SYSTEM_INCLUDES],
        cwd=source_tree.root(), text=True, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, check=False)
    if result.returncode != 0 and not result.stdout:
        return f"{path}: clang-tidy ended with {result.returncode}"
    return result.stdout


@unittest.skipUnless(
    CLANG_TIDY, "clang-tidy is not installed (Debian: clang-tidy)")
class ClangTidy(unittest.TestCase):

    def test_tree(self):
        # A header is read through the files that include it.
        files = source_tree.cpp_files((".cc",))
        self.assertGreater(len(files), 0, "no C++ file found in " +
                           source_tree.root())
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = [text for text in pool.map(complaints, files) if text]
        self.assertFalse(found, "\n" + "\n".join(found))


if __name__ == "__main__":
    xml_main.main()
