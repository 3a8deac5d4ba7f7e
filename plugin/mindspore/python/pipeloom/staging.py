"""Which cell runs on which stage, and the markers that carry it into the graph."""

import difflib
import types

from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.nn.layer.container import CellDict, CellList

from pipeloom.markers import PipeloomBorder


# Have no construct of their own: their cells are called one by one.
_CONTAINERS = (CellDict, CellList)


def stage_of(cell):
    """The cell's own stage; None where it has none."""
    return getattr(cell, "_pipeline_stage", None)


def has_stages(network):
    """Whether the network or a cell in it has a stage."""
    return any(stage_of(cell) is not None for _, cell in network.cells_and_names())


def apply_stage_config(network, stage_config, who):
    """Gives the cells that `stage_config` names their stages. KeyError, as MindSpore's, for other names."""
    cells = dict(network.cells_and_names())
    missing = {}
    for name, stage in stage_config.items():
        # MindSpore has the outermost cell under its printed form.
        cell = cells.get(name) if name else None
        if cell is None and name == str(network):
            cell = network
        if cell is None:
            missing[name] = stage
        else:
            cell.pipeline_stage = stage
    if missing:
        names = [name for name in cells if name]
        hints = [f"{name}: the nearest names are {', '.join(_nearest(name, names))}" for name in missing if names]
        raise KeyError(f"For '{who}', the argument 'stage_config' : {missing} is not found in 'network' : {network}. "
                       + "; ".join(hints))


def _nearest(name, names):
    nearest = difflib.get_close_matches(str(name), names, n=3, cutoff=0.0)
    return [repr(close) for close in nearest]


def mark_network(network):
    """Puts borders around the outermost cells with a stage.

    Where a cell inside such a one has another stage, the longer path wins: the borders are then around the cells one
    level deeper, so that no marked cell is within another. Can be called again after stages were set.
    """
    seen = set()
    for path, cell, stage in _to_mark(network, "", None):
        if not path or id(cell) in seen:
            continue  # all on one stage: there is no border; or the same cell under a second path
        seen.add(id(cell))
        for _, inner in cell.cells_and_names():
            if inner is not cell and _is_marked(inner):
                _unmark(inner)
        if _is_marked(cell):
            if (cell._pipeloom_in.cell, cell._pipeloom_in.stage) == (path, stage):
                continue
            _unmark(cell)
        _mark(cell, path, stage)


def require_stages(network):
    """ValueError where some cells have a stage, and a cell with parameters of its own is in none that has."""
    if not has_stages(network):
        return
    placed, unplaced = set(), {}
    pending = [("", network, stage_of(network) is not None)]
    while pending:
        path, cell, is_placed = pending.pop()
        for parameter in cell.get_parameters(expand=False):
            if is_placed:
                placed.add(id(parameter))
            else:
                unplaced[id(parameter)] = path, parameter.name
        for name, child in cell.name_cells().items():
            child_path = f"{path}.{name}" if path else name
            pending.append((child_path, child, is_placed or stage_of(child) is not None))
    missing = [place for parameter, place in unplaced.items() if parameter not in placed]
    if missing:
        path, parameter = min(missing)
        raise ValueError(f"the cell '{path}' has the parameter {parameter} but no stage, where other cells have one; "
                         "give it a stage in stage_config or as its pipeline_stage")


def _to_mark(cell, path, inherited):
    """Yields (path, cell, stage)."""
    own = stage_of(cell)
    stage = inherited if own is None else own
    children = [(f"{path}.{name}" if path else name, child) for name, child in cell.name_cells().items()]
    if stage is not None and not _has_other_stage(cell, stage) and not isinstance(cell, _CONTAINERS):
        yield path, cell, stage
        return
    if _is_marked(cell):
        _unmark(cell)
    for child_path, child in children:
        yield from _to_mark(child, child_path, stage)


def _has_other_stage(cell, stage):
    return any(stage_of(inner) not in (None, stage) for _, inner in cell.cells_and_names() if inner is not cell)


def _is_marked(cell):
    return hasattr(cell, "_pipeloom_unmarked")


def _unmark(cell):
    cell.__class__ = cell._pipeloom_unmarked


def _marked_out(border, value):
    """All tensors of a result, through the marker. Runs in graphs."""
    if isinstance(value, Tensor):
        return border(value)
    if isinstance(value, (tuple, list)):
        marked = ()
        for element in value:
            marked += (_marked_out(border, element),)
        return marked
    return value


class _Marked:
    """What a marked cell does in place of its class's construct. Runs in graphs."""

    def construct(self, *args, **kwargs):
        """The cell's own, between borders."""
        marked = ()
        for value in args:
            marked += (_marked_out(self._pipeloom_in, value),)
        return _marked_out(self._pipeloom_out, self._pipeloom_construct(*marked, **kwargs))


def _mark(cell, path, stage):
    """Gives the instance a subclass of its own class: names of parameters and the scope stay as they are."""
    base = type(cell)
    # MindSpore's parser reads super() as super(type(self), self), which is now one class off: a class in between has
    # what the methods that say super() of `base` mean by it.
    above, own = {}, {}
    for name, function in vars(base).items():
        if not isinstance(function, types.FunctionType) or name.startswith("__"):
            continue
        if "__class__" in function.__code__.co_freevars and hasattr(super(base, cell), name):
            above[name] = getattr(super(base, cell), name).__func__
            own[name] = function
    own.update(
        construct=_Marked.construct,
        _pipeloom_construct=_function(base.construct),
        _pipeloom_in=PipeloomBorder(path, stage, 0),
        _pipeloom_out=PipeloomBorder(path, stage, 1),
        _pipeloom_unmarked=base,
        __module__=base.__module__,
        __qualname__=base.__qualname__,
        __doc__=base.__doc__)
    bases = (type(base.__name__, (base,), dict(above, __module__=base.__module__)),) if above else (base,)
    cell.__class__ = type(base.__name__, bases, own)


def _function(method):
    return getattr(method, "__func__", method)


def cells_of(function):
    """The cells that a function uses: of its closure, its defaults, the globals that it names, and the functions and
    bound methods among those. The function may be wrapped by mindspore.jit."""
    found, seen, pending = [], set(), [function]
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Cell):
            found.append(value)
        elif isinstance(value, types.MethodType):
            pending += [value.__self__, value.__func__]
        elif isinstance(value, types.FunctionType):
            pending += _values_of(value)
        elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            pending += value
    return found


def _values_of(function):
    values = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    values += function.__defaults__ or ()
    if hasattr(function, "__wrapped__"):
        values.append(function.__wrapped__)
    if not function.__module__ or not function.__module__.startswith("mindspore."):
        values += [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]
    return values


def _is_filled(cell):
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True
