"""oneDNN 3: the pinned wheels from PyPI, or the one that ONEDNN_ROOT names."""

load("//third_party:wheel.bzl", "fetch_wheels")

# The oldest release whose behaviour the CPU kernels were written against.
_OLDEST = (3, 2)

_LIB_DIRS = ["lib", "lib64", "lib/x86_64-linux-gnu"]

_BUILD = """package(default_visibility = ["@//third_party:__subpackages__"])

# The library stands under its SONAME: that is the name the loader looks for in
# the runfiles. It needs the system's libgomp.so.1, which comes with g++.
cc_library(
    name = "onednn",
    srcs = ["lib/{library}"],
    hdrs = glob(["include/**/*.h", "include/**/*.hpp"]),
    includes = ["include"],
)

# To go with copies of the library.
filegroup(
    name = "licenses",
    srcs = glob(["LICENSE", "THIRD-PARTY-PROGRAMS"]),
)
"""

def _version(rctx, header):
    """Reads (major, minor) from the text of dnnl_version.h."""
    found = {}
    for line in rctx.read(header).split("\n"):
        words = [w for w in line.split(" ") if w]
        if len(words) == 3 and words[0] == "#define" and words[1].startswith("DNNL_VERSION_"):
            found[words[1]] = words[2]
    return (int(found["DNNL_VERSION_MAJOR"]), int(found["DNNL_VERSION_MINOR"]))

def _installed(rctx, root):
    """Links include/ and lib/ of an installed oneDNN."""
    for part in ["include/oneapi/dnnl/dnnl.hpp", "include/oneapi/dnnl/dnnl_version.h"]:
        if not rctx.path(root + "/" + part).exists:
            fail("ONEDNN_ROOT is %s, but there is no %s in it." % (root, part))
    rctx.symlink(root + "/include", "include")
    version = _version(rctx, "include/oneapi/dnnl/dnnl_version.h")
    if version[0] != _OLDEST[0] or version < _OLDEST:
        fail("ONEDNN_ROOT is %s, which holds oneDNN %d.%d; 3.2 or a newer 3.x is needed." % (root, version[0], version[1]))
    rctx.file("LICENSE", "oneDNN is under the Apache License 2.0; its texts came with %s.\n" % root)
    library = "libdnnl.so.%d" % version[0]
    for lib_dir in _LIB_DIRS:
        path = rctx.path("%s/%s/%s" % (root, lib_dir, library))
        if path.exists:
            rctx.symlink(path, "lib/" + library)
            return library
    fail("ONEDNN_ROOT is %s, but there is no %s in its %s." % (root, library, ", ".join(_LIB_DIRS)))

def _from_pypi(rctx):
    """Fetches the pinned wheels; keeps the headers and one name of the library."""
    fetch_wheels(rctx, Label("//third_party/onednn:requirements.txt"), "wheels")
    library = "libdnnl.so.3"
    rctx.execute(["mkdir", "lib"])
    for source, target in [
        ("wheels/onednn_devel_cpu_gomp-2023.2.0.data/data/include", "include"),
        ("wheels/onednn_cpu_gomp-2023.2.0.data/data/lib/" + library, "lib/" + library),
        ("wheels/onednn_cpu_gomp-2023.2.0.data/data/share/doc/onednn/LICENSE", "LICENSE"),
        ("wheels/onednn_cpu_gomp-2023.2.0.data/data/share/doc/onednn/THIRD-PARTY-PROGRAMS", "THIRD-PARTY-PROGRAMS"),
    ]:
        result = rctx.execute(["mv", source, target])
        if result.return_code != 0:
            fail("The oneDNN wheel has no %s: %s" % (source, result.stderr))
    rctx.delete("wheels")
    return library

def _onednn_impl(rctx):
    root = rctx.os.environ.get("ONEDNN_ROOT", "")
    library = _installed(rctx, root) if root else _from_pypi(rctx)
    rctx.file("BUILD", _BUILD.format(library = library))

onednn = repository_rule(
    implementation = _onednn_impl,
    doc = "Makes @onednn//:onednn.",
    environ = ["ONEDNN_ROOT"],
)
