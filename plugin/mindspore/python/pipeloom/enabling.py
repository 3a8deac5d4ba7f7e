"""enable and disable: MindSpore's own names for pipelines, on the pipeloom backend."""

import mindspore
import mindspore.communication.management
import mindspore.context
import mindspore.device_manager
import mindspore.nn.utils.init
import mindspore.nn.wrap.cell_wrapper
import mindspore.nn.wrap.grad_reducer
import mindspore.parallel.auto_parallel
import mindspore.parallel.checkpoint_transform
import mindspore.parallel.nn
import mindspore.train.model
from mindspore.nn.cell import Cell
from mindspore.ops.primitive import Primitive

from pipeloom import auto_parallel, communication, context, grad_reducer, graphs, parameters, pipeline
from pipeloom.library import library
from pipeloom.patching import Patches
from pipeloom.settings import require_no_sharding

_patches = Patches()
_enabled = False

# Stays: mindspore.jit(backend="pipeloom") needs it too.
graphs.patch(Patches())

_stock_primitive_shard = Primitive.shard
_stock_cell_shard = Cell.shard
_stock_train = mindspore.train.model.Model.train
_stock_fit = mindspore.train.model.Model.fit


def _primitive_shard(self, in_strategy=None, out_strategy=None):
    require_no_sharding(f"{self.name}.shard's in_strategy", in_strategy)
    require_no_sharding(f"{self.name}.shard's out_strategy", out_strategy)
    return self


def _cell_shard(self, in_strategy, out_strategy=None, parameter_plan=None):
    require_no_sharding("Cell.shard's in_strategy", in_strategy)
    require_no_sharding("Cell.shard's out_strategy", out_strategy)
    return self


def _require_no_sink(sink):
    if sink:
        raise NotImplementedError("dataset_sink_mode=True is not there yet with pipeloom; set it to False")


def _train(self, epoch, train_dataset, callbacks=None, dataset_sink_mode=False, *args, **kwargs):
    _require_no_sink(dataset_sink_mode)
    return _stock_train(self, epoch, train_dataset, callbacks, dataset_sink_mode, *args, **kwargs)


def _fit(self, epoch, train_dataset, valid_dataset=None, valid_frequency=1, callbacks=None, dataset_sink_mode=False,
         valid_dataset_sink_mode=False, *args, **kwargs):
    _require_no_sink(dataset_sink_mode or valid_dataset_sink_mode)
    return _stock_fit(self, epoch, train_dataset, valid_dataset, valid_frequency, callbacks, dataset_sink_mode,
                      valid_dataset_sink_mode, *args, **kwargs)


def _replacements():
    management = mindspore.communication.management
    checkpoint = mindspore.parallel.checkpoint_transform
    return [
        (mindspore.parallel.nn.Pipeline, pipeline.Pipeline),
        (mindspore.parallel.nn.PipelineCell, pipeline.PipelineCell),
        (mindspore.nn.wrap.cell_wrapper.PipelineCell, pipeline.PipelineCell),
        (mindspore.parallel.nn.PipelineGradReducer, grad_reducer.PipelineGradReducer),
        (mindspore.nn.wrap.grad_reducer.PipelineGradReducer, grad_reducer.PipelineGradReducer),
        (mindspore.parallel.auto_parallel.AutoParallel, auto_parallel.PipeloomAutoParallel),
        (management.init, communication.init),
        (management.release, communication.release),
        (management.get_rank, communication.get_rank),
        (management.get_group_size, communication.get_group_size),
        (mindspore.nn.utils.init.no_init_parameters, parameters.no_init_parameters),
        (checkpoint.sync_pipeline_shared_parameters, parameters.sync_pipeline_shared_parameters),
        (mindspore.context.set_auto_parallel_context, context.set_auto_parallel_context),
        (mindspore.context.get_auto_parallel_context, context.get_auto_parallel_context),
        (mindspore.context.reset_auto_parallel_context, context.reset_auto_parallel_context),
        (mindspore.context.set_context, context.set_context),
        (mindspore.device_manager.set_device, context.set_device),
    ]


def enable(threads=None, deadline=None, dump_dir=None):
    """MindSpore's pipeline script runs on the CPUs from now on: its classes and functions for pipelines are replaced,
    also where they have been imported to. Best at the top of a script. A second call changes the options only.

    Args:
        threads (int, optional): compute threads of each rank.
        deadline (float, optional): seconds that a wait for another rank may last.
        dump_dir (str, optional): a folder for graphs as they go through the passes.

    Raises:
        RuntimeError: this copy of the package has no backend.
    """
    global _enabled
    library.require()
    for key, value in ("threads", threads), ("deadline", deadline), ("dump_dir", dump_dir):
        if value is not None:
            library.set(key, value)
    if _enabled:
        return
    _patches.replace(_replacements())
    _patches.set(Cell, "shard", _cell_shard)
    _patches.set(Primitive, "shard", _primitive_shard)
    _patches.set(mindspore.train.model.Model, "train", _train)
    _patches.set(mindspore.train.model.Model, "fit", _fit)
    _enabled = True


def disable():
    """MindSpore is as it was after `import pipeloom`. Networks and objects that were made meanwhile stay as they are."""
    global _enabled
    if _enabled:
        _patches.undo()
        context.context.reset()
        _enabled = False
