"""MindSpore 2.10 for CPUs, from PyPI, unpacked into one folder: 800 MB to
fetch, 1 GB on disk. Fetched when a target that needs it is built, not before."""

load("//third_party:wheel.bzl", "fetch_wheels")

# Kernels for devices that the plugin does not use: 1.5 GB.
_OTHER_DEVICES = ["ascend", "gpu", "gpu11.1", "gpu11.6"]

# The headers include each other relative to these, below mindspore/include.
_INCLUDES = [
    "",
    "/mindspore",
    "/mindspore/core",
    "/mindspore/core/include",
    "/mindspore/ccsrc",
    "/mindspore/ccsrc/include",
    "/mindspore/ops",
    "/mindspore/ops/include",
    "/mindspore/ops/kernel/include",
    "/third_party",
    "/third_party/securec/include",
    "/third_party/robin_hood_hashing",
]

_BUILD = """load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["@//third_party/mindspore:__pkg__"])

# What depends on it is compiled with the wheel's string ABI, so it cannot link our own C++ libraries. The headers stand
# there as one folder: ten thousand inputs an action would cost more than the compilation.
cc_library(
    name = "mindspore",
    srcs = [
        "site-packages/mindspore/lib/libmindspore_backend_manager.so",
        "site-packages/mindspore/lib/libmindspore_common.so",
        "site-packages/mindspore/lib/libmindspore_core.so",
    ],
    defines = [
        "_GLIBCXX_USE_CXX11_ABI=0",
        "ENABLE_FAST_HASH_TABLE=1",
    ],
    includes = {includes},
    textual_hdrs = [
        "python/include",
        "site-packages/mindspore/include",
    ],
)

# site-packages is the folder that its link leads to: it is too big to be copied or linked file by file.
filegroup(
    name = "site_packages",
    srcs = ["site-packages/PLACE"],
)
"""

def _python_headers(rctx):
    """Returns the folder of Python.h."""
    interpreter = rctx.path("/usr/bin/python3")
    command = "import sysconfig; print(sysconfig.get_path('include'), '%d.%d' % __import__('sys').version_info[:2])"
    result = rctx.execute([interpreter, "-c", command])
    if result.return_code != 0:
        fail("%s: %s" % (interpreter, result.stderr))
    folder, version = result.stdout.strip().split(" ")
    if version != "3.11":
        fail("The pinned MindSpore is for Python 3.11, but %s is Python %s." % (interpreter, version))
    if not rctx.path(folder + "/Python.h").exists:
        fail("%s/Python.h is missing: run ./bazelw once, or install the Debian package python3-dev." % folder)
    return folder

def _mindspore_impl(rctx):
    headers = _python_headers(rctx)
    requirements = Label("//third_party/mindspore:requirements.txt")
    fetch_wheels(rctx, requirements, "site-packages")
    for device in _OTHER_DEVICES:
        rctx.delete("site-packages/mindspore/lib/plugin/" + device)
    rctx.symlink(headers, "python/include")
    # With the text of the pins: results of tests that name the file do not outlive a change of them.
    rctx.file("site-packages/PLACE", rctx.read(requirements))
    includes = ["site-packages/mindspore/include" + folder for folder in _INCLUDES] + ["python/include"]
    rctx.file("BUILD", _BUILD.format(includes = repr(includes)))

mindspore = repository_rule(
    implementation = _mindspore_impl,
    doc = "Makes @mindspore//:mindspore and @mindspore//:site_packages.",
)
