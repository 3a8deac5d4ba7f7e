"""Fetches wheels with pip, pinned by hash, without installing anything."""

# Debian's interpreter first: `python3` in PATH may be a shim of a version
# manager that depends on the caller's environment.
_INTERPRETERS = ["/usr/bin/python3", "python3"]

def _make_venv(rctx):
    """Makes a throw-away virtual environment with pip; returns its Python."""
    problems = []
    for candidate in _INTERPRETERS:
        interpreter = rctx.path(candidate) if candidate.startswith("/") else rctx.which(candidate)
        if not interpreter or not interpreter.exists:
            problems.append("%s: not there" % candidate)
            continue
        result = rctx.execute([interpreter, "-m", "venv", "--clear", "_venv"])
        if result.return_code == 0:
            return "_venv/bin/python"
        problems.append("%s -m venv: %s" % (interpreter, (result.stdout + result.stderr).strip()))
    fail("\n".join([
        "No Python can make a virtual environment, which fetching %s needs." % rctx.name,
        "Run ./bazelw once, or install the Debian package python3-venv.",
    ] + problems))

def fetch_wheels(rctx, requirements, output):
    """Downloads the wheels that a requirements file names and unpacks them.

    pip uses whatever package index this machine is configured for: the caller's
    environment and pip's configuration files reach it unchanged.

    Args:
      rctx: the repository context.
      requirements: label of a requirements file; every line has its hash.
      output: directory to unpack all of them into.
    """
    requirements = rctx.path(requirements)
    python = _make_venv(rctx)
    rctx.report_progress("pip download -r %s" % requirements.basename)
    result = rctx.execute([
        python,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--dest=_wheels",
        "--requirement=%s" % requirements,
    ], timeout = 1800)
    if result.return_code != 0:
        fail("\n".join([
            "pip could not fetch the wheels of %s:" % rctx.name,
            (result.stdout + result.stderr).strip(),
            "pip must reach a package index (see `python3 -m pip config list`).",
        ]))
    for wheel in rctx.path("_wheels").readdir():
        result = rctx.execute([python, "-m", "zipfile", "-e", wheel, output])
        if result.return_code != 0:
            fail("Unpacking %s failed: %s" % (wheel, result.stderr))
    rctx.delete("_wheels")
    rctx.delete("_venv")
