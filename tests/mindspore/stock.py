"""Runs a script of Pipeloom's samples on stock MindSpore, in one process: what their losses are compared with.

Micro-batches are those of MindSpore's own Pipeline; what stock MindSpore lacks on a CPU is left out.

Usage: stock.py SCRIPT arguments
"""

import contextlib
import runpy
import sys

from tests.mindspore import host  # isort: skip  (first: it makes the others known)

import mindspore
import mindspore.communication
import mindspore.nn.utils
import mindspore.parallel.auto_parallel
import mindspore.parallel.nn
from mindspore import nn


class NoParallel:
    """In place of AutoParallel."""

    def __init__(self, network, parallel_mode):
        self._network = network

    def __getattr__(self, name):
        return lambda *args, **kwargs: None  # pipeline, dataset_strategy, compile

    def __call__(self, *args):
        return self._network(*args)


class NoReducer(nn.Cell):
    """In place of PipelineGradReducer, which does not compile there."""

    def __init__(self, parameters, opt_shard=None):
        super().__init__(auto_prefix=False)

    def construct(self, grads):
        return grads


def main():
    mindspore.parallel.auto_parallel.AutoParallel = NoParallel
    mindspore.parallel.nn.PipelineGradReducer = NoReducer
    mindspore.parallel.sync_pipeline_shared_parameters = lambda net: None
    mindspore.communication.init = lambda: None
    mindspore.communication.get_rank = lambda: 0
    mindspore.nn.utils.no_init_parameters = contextlib.nullcontext
    mindspore.lazy_inline = lambda function: function
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
