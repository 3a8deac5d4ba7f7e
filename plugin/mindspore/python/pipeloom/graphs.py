"""What happens around the building of a graph: which backend it goes to, its options, its markers, its parameters.

Only graphs for the pipeloom backend are touched, and where stages were asked for those that have some."""

import contextlib
import dataclasses
import weakref

from mindspore.graph import api
from mindspore.nn.cell import Cell

import mindspore
from pipeloom import parameters, staging
from pipeloom.context import context
from pipeloom.library import BACKEND
from pipeloom.pipeline import PipelineCell

_running = []  # AutoParallels, the innermost last
_stock_jit_compile = api._JitExecutor.compile
_stock_cell_compile = api._CellGraphExecutor.compile


@contextlib.contextmanager
def run_by(parallel):
    """Graphs that are built inside have the options of this AutoParallel."""
    _running.append(parallel)
    try:
        yield
    finally:
        _running.pop()


def _cells_in(roots):
    """All cells of them, each once."""
    seen = set()
    for root in roots:
        for _, cell in root.cells_and_names():
            if id(cell) not in seen:
                seen.add(id(cell))
                yield cell


def _settings_for(cells):
    """Of the AutoParallel that runs or holds them; of the context where there is none; else as many stages as the cells
    have."""
    if _running:
        return _running[-1].pipeloom_settings
    for cell in cells:
        settings = getattr(cell, "pipeloom_settings", None)
        if settings is not None:
            return settings
    if context.settings.stages > 1:
        return context.settings
    # Nothing but mindspore.jit(backend="pipeloom") and stages of cells.
    last = max((stage for stage in map(staging.stage_of, cells) if stage is not None), default=0)
    return dataclasses.replace(context.settings, stages=last + 1)


def _is_for_pipelines(cell):
    return isinstance(cell, PipelineCell) or staging.stage_of(cell) is not None


def _require_fp32(cells):
    for cell in cells:
        level = getattr(cell, "_amp_level", "")
        if level not in ("", "O0"):
            raise NotImplementedError(f"amp level {level} (mixed precision) is not there yet with pipeloom; use O0")


def _inline_early(network):
    """What lazy_inline(policy="front") means: cells that a Pipeline calls once are no blocks of the graph, which would
    take their backward parts along as closures."""
    for _, cell in network.cells_and_names():
        if hasattr(cell, "cell_init_args"):  # lazy_inline has set it
            cell.no_inline = False


def _mark(roots, cells):
    """Puts the borders of stages that were set since."""
    pipelines = [cell for cell in cells if isinstance(cell, PipelineCell)]
    for pipeline in pipelines:
        _inline_early(pipeline.network)
        staging.require_stages(pipeline.network)
        staging.mark_network(pipeline.network)
    if not pipelines:
        for root in roots:
            staging.mark_network(root)


class _Prepared:
    """Functions and cells that are ready, so that a call of a graph that was built costs next to nothing."""

    def __init__(self):
        self._for = weakref.WeakKeyDictionary()

    def backend_of(self, owner, roots_of, given):
        """The backend for the graph of `owner`: the one that is given, or pipeloom for what has stages where stages
        were asked for. Prepares a graph for pipeloom, once for equal settings."""
        if given not in ("", BACKEND):
            return given
        if not given and not _running and context.settings.stages == 1:
            return given
        stamp = (given, id(_running[-1]) if _running else 0, context.version)
        known = self._for.get(owner)
        if known is None or known[0] != stamp:
            known = stamp, self._prepare(roots_of(), given)
            self._for[owner] = known
        backend, settings = known[1]
        if settings is not None:
            settings.apply()
        return backend

    def _prepare(self, roots, given):
        cells = list(_cells_in(roots))
        if not given and not any(map(_is_for_pipelines, cells)):
            return given, None
        _require_fp32(cells)
        _mark(roots, cells)
        return BACKEND, _settings_for(cells)


_prepared = _Prepared()


def _with_backend(jit_config_dict, backend):
    """A copy of MindSpore's options with this backend."""
    if backend == (jit_config_dict or {}).get("backend", ""):
        return jit_config_dict
    changed = dict(jit_config_dict or mindspore.JitConfig(jit_level="O0").jit_config_dict)
    changed["backend"] = backend
    return changed


def _given(jit_config_dict):
    return (jit_config_dict or {}).get("backend", "")


def _roots_of_function(executor):
    roots = staging.cells_of(executor.fn)
    if isinstance(executor.obj, Cell):
        roots.append(executor.obj)
    return roots


def patch(patches):
    """From now on building a graph comes by here."""
    patches.set(api._JitExecutor, "compile", jit_compile)
    patches.set(api._CellGraphExecutor, "compile", cell_compile)
    patches.set(Cell, "init_parameters_data", parameters.init_parameters_data)


def jit_compile(self, method_name, *args, **kwargs):
    """In place of _JitExecutor.compile, which each call of a function comes to."""
    backend = _prepared.backend_of(self.fn, lambda: _roots_of_function(self), _given(self.jit_config_dict))
    self.jit_config_dict = _with_backend(self.jit_config_dict, backend)
    phase = _stock_jit_compile(self, method_name, *args, **kwargs)
    if backend == BACKEND:
        parameters.draw()
    return phase


def cell_compile(self, obj, *args, phase="predict", do_convert=True, jit_config_dict=None, **kwargs):
    """In place of _CellGraphExecutor.compile, which each call of a cell comes to."""
    backend = _prepared.backend_of(obj, lambda: [obj], _given(jit_config_dict))
    changed = _with_backend(jit_config_dict, backend)
    if changed is not jit_config_dict:
        obj._jit_config_dict = changed  # the run looks there
    with parameters.drawn_by_pipeloom(backend == BACKEND):
        result = _stock_cell_compile(self, obj, *args, phase=phase, do_convert=do_convert, jit_config_dict=changed,
                                     **kwargs)
    if backend == BACKEND:
        parameters.draw()
    return result
