"""Values of parameters: who draws them, who has them."""

import contextlib

import numpy as np

from mindspore.common.dtype import _dtype_to_nptype
from mindspore.common.initializer import Constant, One, Zero
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.nn.utils import init as stock

from pipeloom.library import library

_stock_no_init_parameters = stock.no_init_parameters
_stock_init_parameters_data = Cell.init_parameters_data

_waiting = []  # parameters without a value, in the order of their creation
_drawn_by_pipeloom = False


@contextlib.contextmanager
def no_init_parameters():
    """Parameters that are made inside get their values when a graph has been built: each rank draws all of them, in the
    order of their creation, so that the values are those of one device, and keeps only those of its own stages."""
    stock_init = Parameter.__init__

    def noting_init(self, *args, **kwargs):
        stock_init(self, *args, **kwargs)
        _waiting.append(self)

    Parameter.__init__ = noting_init
    try:
        with _stock_no_init_parameters():
            yield
    finally:
        Parameter.__init__ = stock_init


def draw():
    """Gives parameters that wait their values, where this rank's programs use them."""
    if not _waiting:
        return
    later = []
    for parameter in _waiting:
        if not parameter.has_init:
            continue  # meanwhile given a value
        owned = library.owns(parameter.name)
        if owned is None:
            later.append(parameter)
        elif owned:
            parameter.init_data()
        else:
            _draw_and_drop(parameter)
    _waiting[:] = later


def _draw_and_drop(parameter):
    """The stream of random numbers goes on, and no memory is held."""
    initializer = parameter.init_mode.init
    if not isinstance(initializer, (Constant, One, Zero)):
        initializer(np.empty(parameter.shape, _dtype_to_nptype(parameter.dtype)))


@contextlib.contextmanager
def drawn_by_pipeloom(active):
    """While MindSpore compiles a cell: it is not to give values to all parameters."""
    global _drawn_by_pipeloom
    before, _drawn_by_pipeloom = _drawn_by_pipeloom, active
    try:
        yield
    finally:
        _drawn_by_pipeloom = before


def init_parameters_data(self, auto_parallel_mode=False):
    """In place of Cell's."""
    if not _drawn_by_pipeloom:
        return _stock_init_parameters_data(self, auto_parallel_mode)
    waiting = {id(parameter) for parameter in _waiting}
    for parameter in self.get_parameters():
        if parameter.has_init and id(parameter) not in waiting:
            parameter.init_data()
    return {}


def gather_parameters(net, to_rank=None):
    """Brings the values of all parameters of `net` from the ranks that own them to every rank, or to one. All ranks
    call it, with the same arguments.

    Args:
        net (Cell): its programs have been built.
        to_rank (int, optional): the rank that gets them.

    Raises:
        TypeError: `net` is not a cell.
        ValueError: there is no such rank.
    """
    _require_cell("gather_parameters", net)
    rank, size = library.world()
    if to_rank is not None and not 0 <= to_rank < size:
        raise ValueError(f"gather_parameters to rank {to_rank}: there are ranks 0 to {size - 1}")
    for parameter in net.get_parameters():
        owned = library.owns(parameter.name)
        if size == 1 or owned is None:
            continue
        value = _value_of(parameter, owned)
        library.gather(parameter.name, value, -1 if to_rank is None else to_rank)
        if not owned and to_rank in (None, rank):
            parameter.set_data(Tensor(value))


def sync_pipeline_shared_parameters(net):
    """Makes the copies of parameters that several stages use equal, to that of the first such stage. All ranks call it,
    when the network is compiled.

    Raises:
        TypeError: `net` is not a cell.
    """
    _require_cell("sync_pipeline_shared_parameters", net)
    _, size = library.world()
    if size == 1:
        return
    for parameter in net.get_parameters():
        owned = library.owns(parameter.name)
        if owned is None:
            continue
        value = _value_of(parameter, owned)
        library.gather(parameter.name, value, -1)
        if owned:
            np.copyto(parameter.asnumpy(), value)


def _value_of(parameter, owned):
    """A new array, with the value where this rank owns it."""
    if owned:
        return np.array(parameter.asnumpy())
    return np.empty(parameter.shape, _dtype_to_nptype(parameter.dtype))


def _require_cell(who, net):
    if not isinstance(net, Cell):
        raise TypeError(f"For '{who}', the argument 'net' should be a Cell, but got {type(net)}.")
