"""Pipeloom for MindSpore: pipeline parallelism on CPUs.

Three ways in, of which each next one changes less of a script:

* `import pipeloom`, then `mindspore.jit(backend="pipeloom")` or `JitConfig(jit_level="O0", backend="pipeloom")`, with
  `pipeloom.Pipeline` for micro-batches; there are as many stages as the cells have;
* `pipeloom.enable()` at the top: MindSpore's own pipeline classes then run on this backend;
* `pipeloom-run -n 2 script.py`: no change at all.
"""

import atexit
import sys

from pipeloom.auto_parallel import PipeloomAutoParallel as AutoParallel
from pipeloom.enabling import disable, enable
from pipeloom.grad_reducer import PipelineGradReducer
from pipeloom.library import library as _library
from pipeloom.parameters import gather_parameters, no_init_parameters
from pipeloom.pipeline import Pipeline

__all__ = [
    "AutoParallel", "Pipeline", "PipelineGradReducer", "disable", "enable", "end", "gather_parameters",
    "no_init_parameters"
]

_failure = None


def end(failure=None):
    """Ends this rank's part in the run; `failure` is why, which all other ranks are told. Called by itself when the
    script ends."""
    _library.end(failure)


def _note_failure(kind, error, traceback, previous=sys.excepthook):
    global _failure
    _failure = f"{kind.__name__}: {error}"
    previous(kind, error, traceback)


sys.excepthook = _note_failure
atexit.register(lambda: end(_failure))
_library.register()
