"""AutoParallel, in place of MindSpore's."""

import inspect
import time
import types

import mindspore
from mindspore.graph.api import _handle_func_args, _JitExecutor
from mindspore.nn.cell import Cell
from mindspore.parallel import auto_parallel as stock

from pipeloom import graphs
from pipeloom.library import BACKEND
from pipeloom.settings import Settings, checked_dataset_strategy

_StockAutoParallel = stock.AutoParallel


def _later(name, meaning):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"AutoParallel.{name} ({meaning}) is not there yet with pipeloom")

    refuse.__name__ = name
    return refuse


class PipeloomAutoParallel(_StockAutoParallel):
    """Runs a cell or a function, such as one of mindspore.jit, on the pipeloom backend.

    The options stay here: MindSpore's own context would refuse a CPU. MindSpore knows its own class by its name, and so
    leaves this one alone.

    Args and exceptions are MindSpore's; NotImplementedError names what is not there yet.
    """

    def __init__(self, network, parallel_mode="semi_auto"):
        super().__init__(network, parallel_mode)
        if parallel_mode != "semi_auto":
            raise NotImplementedError(f"AutoParallel's parallel_mode='{parallel_mode}' is not there yet with pipeloom; "
                                      "choose 'semi_auto'")
        self.pipeloom_settings = Settings()
        config = mindspore.JitConfig(jit_level="O0", backend=BACKEND)
        # What encloses this cell, such as a train network that Model makes, takes it from here.
        self._jit_config_dict = config.jit_config_dict
        self._function = None
        if not isinstance(network, Cell):
            self._function = _JitFunction(network, config)
        elif not network.jit_config_dict:
            network.set_jit_config(config)
        else:
            network.jit_config_dict.update(config.jit_config_dict)

    def pipeline(self, stages=1, output_broadcast=False, interleave=False, scheduler="1f1b"):
        """How many stages, whether every rank gets the result, and the schedule."""
        super().pipeline(stages, output_broadcast, interleave, scheduler)
        self.pipeloom_settings.stages = stages
        self.pipeloom_settings.output_broadcast = output_broadcast
        self.pipeloom_settings.interleave = interleave
        self.pipeloom_settings.scheduler = scheduler
        self.pipeloom_settings.check()

    def dataset_strategy(self, config):
        """"full_batch": every rank reads the whole batch; "data_parallel": each data rank reads its own."""
        super().dataset_strategy(config)
        self.pipeloom_settings.dataset_strategy = checked_dataset_strategy(config)

    def enable_gradients_mean(self):
        """Gradients are averaged over data ranks, not summed."""
        super().enable_gradients_mean()
        self.pipeloom_settings.gradients_mean = True

    @property
    def full_batch(self):
        """Whether dataset_strategy is "full_batch"."""
        return self.pipeloom_settings.dataset_strategy == "full_batch"

    @full_batch.setter
    def full_batch(self, value):
        self.dataset_strategy("full_batch" if value else "data_parallel")

    hsdp = _later("hsdp", "a sharded optimizer")
    load_param_strategy_file = _later("load_param_strategy_file", "parallel strategies")
    save_param_strategy_file = _later("save_param_strategy_file", "parallel strategies")
    load_operator_strategy_file = _later("load_operator_strategy_file", "parallel strategies")
    save_operator_strategy_file = _later("save_operator_strategy_file", "parallel strategies")
    no_init_parameters_in_compile = _later("no_init_parameters_in_compile", "parameters without values")
    set_group_ckpt_save_file = _later("set_group_ckpt_save_file", "files of communication groups")
    print_local_norm = _later("print_local_norm", "norms of a rank")
    dump_local_norm = _later("dump_local_norm", "norms of a rank")
    enable_device_local_norm = _later("enable_device_local_norm", "norms of a rank")

    def transformer_opt(self, file_path):
        """Nothing without a file."""
        if file_path:
            raise NotImplementedError("AutoParallel.transformer_opt (options of other devices) is not there with "
                                      "pipeloom")

    def compile(self, *args, **kwargs):
        """Builds the graph for such arguments and draws the parameters of this rank's stages."""
        with graphs.run_by(self):
            if self._function is not None:
                self._function.compile(*args, **kwargs)
            else:
                self.network.compile(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        with graphs.run_by(self):
            if self._function is not None:
                return self._function(*args, **kwargs)
            return self.network(*args, **kwargs)

    def construct(self, *args, **kwargs):
        """Where this cell is part of another's graph."""
        return self.network(*args, **kwargs)


class _JitFunction:
    """What mindspore.jit(function, backend="pipeloom") makes, of a function that may be jitted already; and its graph
    can be built without a run."""

    def __init__(self, function, config):
        if not callable(function):
            raise TypeError("For 'AutoParallel', the argument 'network' must be a cell or a function, "
                            f"but got {function}")
        self._first = (function.__self__,) if isinstance(function, types.MethodType) else ()
        self._function = inspect.unwrap(getattr(function, "__func__", function))
        self._config = config
        self._time = int(time.time() * 1e9)

    def _executor(self, args, kwargs):
        args, kwargs = _handle_func_args(self._function, *self._first, *args, **kwargs)
        owner = self._first[0] if self._first else None
        return _JitExecutor(self._function, self._time, None, owner, self._config, 0, ""), args, kwargs

    def __call__(self, *args, **kwargs):
        executor, args, kwargs = self._executor(args, kwargs)
        return executor(*args, **kwargs)

    def compile(self, *args, **kwargs):
        """Builds the graph for such arguments."""
        executor, args, kwargs = self._executor(args, kwargs)
        executor.compile(self._function.__name__, *args[len(self._first):], **kwargs)
