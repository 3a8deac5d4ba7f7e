"""The command pipeloom-run. It stands beside the package, whose import loads MindSpore."""

import os
import runpy


def main():
    launcher = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pipeloom", "launcher.py")
    return runpy.run_path(launcher)["main"]()
