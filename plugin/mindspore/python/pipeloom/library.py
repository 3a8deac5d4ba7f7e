"""The shared library behind the backend, and what it is asked for by ctypes."""

import ctypes
import os

import mindspore.graph

BACKEND = "pipeloom"
_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libpipeloom_mindspore.so")

_TEXT = ctypes.c_char_p
_INT_OUT = ctypes.POINTER(ctypes.c_int)
_SIGNATURES = {
    "set": (_TEXT, [_TEXT, _TEXT]),
    "world": (_TEXT, [_INT_OUT, _INT_OUT]),
    "end": (_TEXT, [_TEXT]),
    "owns": (ctypes.c_int, [_TEXT]),
    "gather": (_TEXT, [_TEXT, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]),
}

# What the library has for a key before it is set.
_DEFAULTS = {
    "stages": "1",
    "schedule": "",
    "output_broadcast": "0",
    "dataset_strategy": "data_parallel",
    "gradients_mean": "0",
}


class Library:
    """Each method raises RuntimeError with the library's own text."""

    def __init__(self, path=_PATH):
        self._path = path
        self._library = None
        self._functions = {}
        self._set_to = dict(_DEFAULTS)
        self._world = None

    def register(self):
        """Tells MindSpore of the backend, where the library is there."""
        if os.path.exists(self._path):
            self._load()

    def require(self):
        """RuntimeError where it is not there."""
        self._load()

    def _load(self):
        if self._library is not None:
            return
        if not os.path.exists(self._path):
            raise RuntimeError(f"{self._path} is missing: this copy of the package has no backend; build its wheel "
                               "with ./bazelw build //plugin/mindspore:wheel and install that")
        mindspore.graph.register_custom_backend(BACKEND, self._path)
        self._library = ctypes.CDLL(self._path)

    def _function(self, name):
        if name not in self._functions:
            self._load()
            function = getattr(self._library, "pipeloom_mindspore_" + name)
            function.restype, function.argtypes = _SIGNATURES[name]
            self._functions[name] = function
        return self._functions[name]

    def _call(self, name, *arguments):
        error = self._function(name)(*arguments)
        if error is not None:
            raise RuntimeError(error.decode())

    def set(self, key, value):
        """An option for graphs that are built from now on."""
        value = str(value)
        if self._set_to.get(key) == value:
            return
        self._call("set", key.encode(), value.encode())
        self._set_to[key] = value

    def world(self):
        """(rank, size) of this process among those that a launcher has started; the first call meets the others."""
        if self._world is None:
            rank, size = ctypes.c_int(), ctypes.c_int()
            self._call("world", ctypes.byref(rank), ctypes.byref(size))
            self._world = rank.value, size.value
        return self._world

    def end(self, failure):
        """The last call: ends this rank's part; `failure` is None, or why, which the other ranks are told."""
        if self._library is not None:
            self._call("end", None if failure is None else failure.encode())

    def owns(self, parameter):
        """Whether this rank's programs use the parameter; None where no program knows it."""
        answer = self._function("owns")(parameter.encode())
        return None if answer < 0 else bool(answer)

    def gather(self, parameter, array, to_rank):
        """Fills the array with the parameter's value, on one rank, or on all for -1. All ranks make the same calls."""
        self._call("gather", parameter.encode(), array.ctypes.data, array.nbytes, to_rank)


library = Library()
