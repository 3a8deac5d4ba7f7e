"""A rank in a process of Python's, which loads the library as it runs."""

import ctypes
import sys

TEXT = b"""
pipeline {micro_batches=2, schedule="forward", stages=2}
stage "a" = 0
stage "b" = 1
graph @step(%x: f32[1,2] {batch_axis=0}) -> (%y {reduce="sum"}) {
  %h = neg(%x) : f32[1,2]  // a, forward
  %y = reduce_sum(%h) : f32[]  // b, forward
}
"""


class Type(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_int),
                ("extents", ctypes.POINTER(ctypes.c_int64))]


class Tensor(ctypes.Structure):
    _fields_ = [("type", Type), ("data", ctypes.c_void_p)]


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.pipeloom_last_error.restype = ctypes.c_char_p

    def call(name, *arguments):
        code = getattr(library, "pipeloom_" + name)(*arguments)
        if code != 0:
            error = library.pipeloom_last_error().decode()
            raise RuntimeError(f"{name}: {error}")

    world, module, program, session = (ctypes.c_void_p() for _ in range(4))
    rank, loaded = ctypes.c_int(), ctypes.c_int()
    call("world_join", sys.argv[2].encode(), ctypes.c_int64(20000),
         ctypes.byref(world))
    call("world_info", world, ctypes.byref(rank), None, None)
    call("session_create_for_rank", world, None, ctypes.byref(session))
    call("module_parse", TEXT, ctypes.byref(module))
    call("compile", module, None, ctypes.byref(program))
    call("session_load", session, program, ctypes.byref(loaded))
    x, y = (ctypes.c_float * 4)(1, 2, 3, 4), ctypes.c_float()
    given = Tensor(Type(0, 2, (ctypes.c_int64 * 2)(2, 2)), ctypes.addressof(x))
    taken = Tensor(Type(0, 0, None), ctypes.addressof(y))
    one = ctypes.c_size_t(1)
    call("session_run", session, loaded, ctypes.byref(given), one,
         ctypes.byref(taken), one)
    print(f"rank {rank.value}: y = {y.value}", flush=True)
    library.pipeloom_session_destroy(session)
    library.pipeloom_program_destroy(program)
    library.pipeloom_module_destroy(module)
    call("world_end", world, None)


if __name__ == "__main__":
    main()
