"""Makes or refreshes .venv in the checkout: MindSpore, what it needs, and Pipeloom's wheel.

Usage: make_venv.py SITE_PACKAGES/PLACE WHEEL      (as `bazel run` starts it)

MindSpore is not fetched again, nor does it take its space twice where hard links can be made: the files are those that
Bazel unpacked.
"""

import configparser
import os
import shutil
import subprocess
import sys
import sysconfig

# What the MindSpore in .venv was linked from: the text of the pins.
_MARK = "mindspore-pins.txt"


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _make(venv, place):
    """A new environment with all of the folder of `place`."""
    print(f"making {venv}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
    site_packages = _site_packages(venv)
    source = os.path.dirname(place)
    for name in sorted(os.listdir(source)):
        path = os.path.join(source, name)
        if name == "__pycache__" or path == place:
            continue
        target = os.path.join(site_packages, name)
        if os.path.isdir(path):
            shutil.copytree(path, target, copy_function=_link_or_copy, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("__pycache__"))
        else:
            _link_or_copy(path, target)
        if name.endswith(".dist-info"):
            _make_commands(venv, os.path.join(path, "entry_points.txt"))
    shutil.copy(place, os.path.join(venv, _MARK))


def _site_packages(venv):
    return sysconfig.get_path("purelib", "venv", vars={"base": venv, "platbase": venv})


def _make_commands(venv, entry_points):
    """What pip makes of a package's entry points, such as msrun."""
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str
    parser.read(entry_points)
    for name, place in parser.items("console_scripts") if parser.has_section("console_scripts") else ():
        module, function = place.split(":")
        command = os.path.join(venv, "bin", name)
        with open(command, "w", encoding="utf-8") as file:
            # Not in the first line, where a path must be short and without blanks.
            file.write(f"#!/bin/sh\n''':'\nexec \"$(dirname \"$(readlink -f \"$0\")\")/python\" \"$0\" \"$@\"\n'''\n"
                       f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
        os.chmod(command, 0o755)


def main(arguments):
    checkout = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if len(arguments) != 2 or not checkout:
        sys.exit(__doc__)
    place, wheel = map(os.path.realpath, arguments)
    venv = os.path.join(checkout, ".venv")
    python = os.path.join(venv, "bin", "python")
    if _read(os.path.join(venv, _MARK)) != _read(place) or not os.path.exists(python):
        _make(venv, place)
    print(f"installing {os.path.basename(wheel)}", flush=True)
    subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-index", "--no-deps",
                    "--force-reinstall", wheel], check=True)
    print(f"ready: {os.path.join(venv, 'bin', 'pipeloom-run')} -n 2 script.py")


if __name__ == "__main__":
    main(sys.argv[1:])
