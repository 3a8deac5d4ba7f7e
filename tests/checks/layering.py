"""The rule that says which file may include which: kernels < passes < plugin
< samples < tests, and the finer lines inside these rooms."""

import re

from tests.checks.source_tree import ROOMS

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')

# (who, what he must not include, why). `who` and `what` are regular
# expressions for a path from the workspace root, matched at its beginning.
_RULES = (
    (r"kernels/base/", r"kernels/(?!base/)",
     "kernels/base is what all others stand on"),
    (r"kernels/registry/", r"kernels/(?!base/|registry/)",
     "kernels/registry sees kernels/base only"),
    (r"kernels/cpu/", r"kernels/(gpu|transport)/",
     "kernels/{cpu,gpu,transport} do not see each other"),
    (r"kernels/gpu/", r"kernels/(cpu|transport)/",
     "kernels/{cpu,gpu,transport} do not see each other"),
    (r"kernels/transport/", r"kernels/(cpu|gpu)/",
     "kernels/{cpu,gpu,transport} do not see each other"),
    (r"passes/", r"kernels/(?!base/)",
     "passes know no device: they see kernels/base only"),
    (r"plugin/runtime/", r"plugin/(?!runtime/)",
     "plugin/runtime sees no host (cells, engine, c_api, mindspore)"),
    (r"(?!plugin/mindspore/|tests/)", r"plugin/mindspore/",
     "only plugin/mindspore sees the MindSpore adapter"),
)

# (headers of a foreign library, who may include them, why).
_FOREIGN = (
    (r"(mindspore|abstract|backend|frontend|ir|ops|pybind_api|runtime|"
     r"utils|include/(backend|common|runtime|transform))/|"
     r"custom_backend_api\.h",
     r"plugin/mindspore/", "only plugin/mindspore sees MindSpore headers"),
    (r"(cuda|cublas|cudnn|cufft|curand|cusolver|cusparse|device_launch_"
     r"parameters|driver_types|nvrtc|nvml|nvtx|nccl)\w*\.(h|hpp)|"
     r"(cub|cuda|cutlass|thrust|nvtx3|cooperative_groups)(/|\.h)|"
     r"cooperative_groups|nccl/|mma\.h",
     r"kernels/(gpu/|transport/nccl)",
     "only kernels/gpu and kernels/transport/nccl* see CUDA"),
    (r"(oneapi/dnnl/|dnnl)", r"kernels/cpu/|tests/",
     "only kernels/cpu (and tests) see oneDNN"),
    (r"mpi\w*\.h|mpi-ext\.h|openmpi/", r"kernels/transport/mpi|tests/",
     "only kernels/transport/mpi* (and tests) see MPI"),
    (r"(gtest|gmock)/", r".*(_test\.(cc|cu|h)$|/testlib/)|tests/",
     "only tests see GoogleTest"),
)

# What may stand in quotes, apart from our own files.
_QUOTED_LIBRARIES = re.compile(
    r"(absl|benchmark|gmock|gtest|nlohmann|oneapi/dnnl|spdlog)/|"
    r"(cu\w+|nccl\w*|mpi)\.h$")


def includes(text):
    """Yields (line number, '<' or '"', path) of each #include in `text`."""
    for number, line in enumerate(text.splitlines(), start=1):
        match = _INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def _room(path):
    room = path.split("/", 1)[0]
    return ROOMS.index(room) if "/" in path and room in ROOMS else None


def violation(includer, bracket, included, exists):
    """Says why `includer` must not include `included`, or returns None.

    Args:
      includer: path of the including file, from the workspace root.
      bracket: how the include is written, '<' or '"'.
      included: what stands between the brackets.
      exists: function: is there a file of that path below the root?
    """
    own = _room(included)
    if own is not None:
        if bracket == "<":
            return "our own files are included in quotes"
        if not exists(included):
            return "there is no such file"
        if own > _room(includer):
            return "a room sees only itself and rooms to its left: " + \
                " < ".join(ROOMS)
        for who, what, why in _RULES:
            if re.match(who, includer) and re.match(what, included):
                return why
        return None

    for what, who, why in _FOREIGN:
        if re.match(what, included) and not re.match(who, includer):
            return why
    if (bracket == '"' and not _QUOTED_LIBRARIES.match(included) and
            not includer.startswith("plugin/mindspore/")):
        return "quoted paths start at the workspace root"
    return None
