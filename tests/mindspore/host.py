"""MindSpore and the package `pipeloom` from the runfiles of a test: `from tests.mindspore import host` comes first."""

import os
import sys

sys.path[:0] = [
    os.path.abspath(os.path.join("plugin", "mindspore", "python")),
    os.path.dirname(os.path.realpath(os.path.join("external", "mindspore", "site-packages", "PLACE"))),
]
