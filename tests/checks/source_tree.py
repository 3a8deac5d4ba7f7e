"""Where the sources stand, and which files are ours.

The checks look at the whole tree, not at the files of one package, so they do
not get them as `data`: they follow the link to the WORKSPACE file out of the
runfiles.
"""

import os

# From left to right: a room may use itself and what stands before it.
ROOMS = ("kernels", "passes", "plugin", "samples", "tests")

CPP_SUFFIXES = (".h", ".cc", ".cu", ".cuh")


def root():
    """Returns the directory of the checkout."""
    workspace = os.path.join(
        os.environ.get("TEST_SRCDIR", os.getcwd()),
        os.environ.get("TEST_WORKSPACE", ""), "WORKSPACE")
    return os.path.dirname(os.path.realpath(workspace))


def cpp_files(suffixes=CPP_SUFFIXES):
    """Returns the paths of all C++ files in the rooms, relative to root()."""
    found = []
    for room in ROOMS:
        for directory, _, names in os.walk(os.path.join(root(), room)):
            found += [
                os.path.relpath(os.path.join(directory, name), root())
                for name in names if name.endswith(suffixes)
            ]
    return sorted(found)
