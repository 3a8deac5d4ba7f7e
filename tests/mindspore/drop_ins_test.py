"""The package in place of MindSpore's pipeline classes: the markers in a graph, errors, and what enable() changes.

Needs no backend: graphs are built by MindSpore's front end alone, and the library is a stub.
"""

import re
import sys
import types
import unittest
from unittest import mock

from tests.mindspore import host  # isort: skip  (first: it makes the others known)

import numpy as np
import mindspore as ms
import mindspore.communication
import mindspore.nn.utils
import mindspore.parallel.nn
from mindspore import Parameter, Tensor, nn, ops
from mindspore._c_expression import dump_func_graph
from mindspore.common.initializer import initializer
from mindspore.graph import api

import pipeloom
from pipeloom import context, graphs, parameters, staging
from pipeloom.grad_reducer import PipelineGradReducer
from pipeloom.library import library
from pipeloom.pipeline import Pipeline, PipelineCell
from tests.checks import xml_main

_NODE = re.compile(r"%\d+\(\S+\) = (\w+)\((.*?)\)(?: \{instance[^}]*\})?(?: primitive_attrs: \{(.*?)\})? ")
_ATTRIBUTE = re.compile(r'(\w+): (?:I64\((\d+)\)|F32\(([\d.]+)\)|"([^"]*)")')


def nodes_of(function, *arguments):
    """(op, attributes) of each node that MindSpore's front end makes of a function, in their order."""
    text = dump_func_graph(api._frontend_compile(function)(*arguments).func_graph)
    nodes = []
    for match in _NODE.finditer(text):
        attributes = {name: integer or real or string for name, integer, real, string in
                      _ATTRIBUTE.findall(match[3] or "")}
        nodes.append((match[1].replace("PrimFunc_", ""), attributes))
    return nodes


def markers_of(function, *arguments):
    """Each marker as one line."""
    lines = []
    for op, attributes in nodes_of(function, *arguments):
        if op.startswith("Pipeloom"):
            lines.append(" ".join([op[len("Pipeloom"):], *(f"{attributes[name]}" for name in sorted(attributes))]))
    return lines


class Two(nn.Cell):
    """A dense layer that is called `a`, and one `b`."""

    def __init__(self):
        super().__init__()
        self.a = nn.Dense(4, 4)
        self.b = nn.Dense(4, 4)

    def construct(self, x):
        return self.b(self.a(x))


class Calls(nn.Cell):
    """Gives its cell a keyword, and takes a tuple from it."""

    def __init__(self):
        super().__init__()
        self.masked = Masked()

    def construct(self, x):
        result, rest = self.masked(x, mask=None, factor=3)
        return result + rest[0]


class Masked(nn.Cell):

    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 4)

    def construct(self, x, mask, factor=2):
        if mask is not None:
            x = x * mask
        return self.dense(x) * factor, (x, factor)


class Twice(nn.Dense):
    """Says super()."""

    def construct(self, x):
        return super().construct(x) * 2


def batch(rows=8):
    return Tensor(np.ones((rows, 4)), ms.float32)


def call_of(network):
    """A function that calls it."""

    def call(x):
        return network(x)

    return call


def train_step(network, micro_size, stages):
    optimizer = nn.SGD(network.trainable_params(), 1e-2)
    reducer = PipelineGradReducer(optimizer.parameters, opt_shard=False)
    pipeline = Pipeline(nn.WithLossCell(network, nn.MSELoss()), micro_size, stage_config=stages)

    def forward(x, y):
        return pipeline(x, y)

    gradients_of = ops.value_and_grad(forward, None, optimizer.parameters)

    def step(x, y):
        loss, gradients = gradients_of(x, y)
        gradients = reducer(gradients)
        optimizer(gradients)
        return loss, gradients

    return step


class MarkersTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        ms.set_context(mode=ms.GRAPH_MODE)

    def test_a_training_step_has_its_markers_in_order_and_the_network_once(self):
        step = train_step(Two(), 4, {"_backbone.a": 0, "_backbone.b": 1})
        nodes = nodes_of(step, batch(), batch())
        self.assertEqual([op for op, _ in nodes].count("MatMul"), 2 + 3)  # no gradient of the input
        self.assertEqual(markers_of(step, batch(), batch()), [
            "Slice 0 4", "Border _backbone.a 0 0", "Border _backbone.a 1 0", "Border _backbone.b 0 1",
            "Border _backbone.b 1 1", "Slice 1 4", "Merge 4 sum", "MergeGrad 4 sum", "BorderGrad _backbone.b 1 1",
            "BorderGrad _backbone.b 0 1", "BorderGrad _backbone.a 1 0", "Reduce a.weight 1", "Reduce a.bias 1",
            "Reduce b.weight 1", "Reduce b.bias 1"
        ])

    def test_the_graph_does_not_grow_with_micro_batches(self):
        sizes = {len(nodes_of(train_step(Two(), count, {"_backbone.a": 0}), batch(), batch())) for count in (1, 2, 8)}
        self.assertEqual(len(sizes), 1)

    def test_names_of_parameters_stay_and_classes_are_still_theirs(self):
        network = Two()
        names = [parameter.name for parameter in network.get_parameters()]
        Pipeline(network, 2, {"a": 0, "b": 1})
        self.assertEqual([parameter.name for parameter in network.get_parameters()], names)
        self.assertIsInstance(network.a, nn.Dense)
        self.assertEqual(type(network.a).__name__, "Dense")
        self.assertNotEqual(type(network.a), type(network.b))

    def test_keywords_numbers_tuples_and_none_pass_through_a_marked_cell(self):
        network = Calls()
        network.masked.pipeline_stage = 1
        staging.mark_network(network)
        self.assertEqual(markers_of(call_of(network), batch()),
                         ["Border masked 0 1", "Border masked 1 1", "Border masked 1 1"])

    def test_a_class_that_says_super_does_what_it_did(self):
        network = nn.SequentialCell(Twice(4, 4), nn.ReLU())
        network[0].pipeline_stage = 0
        staging.mark_network(network)
        ops_of = [op for op, _ in nodes_of(call_of(network), batch())]
        self.assertEqual(ops_of.count("MatMul"), 1)
        self.assertEqual(ops_of.count("Muls"), 1)

    def test_a_deeper_stage_wins_and_borders_are_never_nested(self):
        network = nn.SequentialCell(Two(), Two())
        network[0].pipeline_stage = 0
        network[0].b.pipeline_stage = 1
        network[1].pipeline_stage = 1
        staging.mark_network(network)
        marked = {path for path, cell in network.cells_and_names() if staging._is_marked(cell)}
        self.assertEqual(marked, {"0.a", "0.b", "1"})
        network[0].b.pipeline_stage = 0  # changed: the outer cell is marked in place of the inner ones
        staging.mark_network(network)
        marked = {path for path, cell in network.cells_and_names() if staging._is_marked(cell)}
        self.assertEqual(marked, {"0", "1"})

    def test_a_list_with_a_stage_marks_its_cells(self):
        network = nn.Cell()
        network.blocks = nn.CellList([Two(), Two()])
        network.blocks.pipeline_stage = 1
        staging.mark_network(network)
        marked = {path for path, cell in network.cells_and_names() if staging._is_marked(cell)}
        self.assertEqual(marked, {"blocks.0", "blocks.1"})

    def test_outside_graphs_marked_cells_compute_what_they_did(self):
        network = Two()
        ms.set_context(mode=ms.PYNATIVE_MODE)
        expected = network(batch()).asnumpy()
        Pipeline(network, 2, {"a": 0, "b": 1})
        np.testing.assert_array_equal(network(batch()).asnumpy(), expected)
        with self.assertRaisesRegex(RuntimeError, "graph mode"):
            Pipeline(network, 2)(batch())

    def test_cells_of_a_function_are_found_through_closures_and_jit(self):
        network = Two()

        def forward(x):
            return network(x)

        gradients_of = ops.value_and_grad(forward, None, network.trainable_params())

        @ms.jit
        def step(x):
            return gradients_of(x)

        self.assertIn(network, staging.cells_of(step))


class RefusalsTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        ms.set_context(mode=ms.GRAPH_MODE)

    def test_an_unknown_name_is_a_key_error_with_the_nearest_ones(self):
        with self.assertRaisesRegex(KeyError, "'_backbone.aa': 0.*not found.*the nearest names are '_backbone.a'"):
            Pipeline(nn.WithLossCell(Two(), nn.MSELoss()), 2, {"_backbone.aa": 0, "_backbone.b": 1})

    def test_arguments_of_other_types(self):
        self.assertRaisesRegex(TypeError, "'network' must cell type", Pipeline, 3, 2)
        self.assertRaisesRegex(TypeError, "'micro_size' must be integer", Pipeline, Two(), 2.0)
        self.assertRaisesRegex(ValueError, "large than 0, but got 0", PipelineCell, Two(), 0)
        self.assertRaisesRegex(TypeError, "must be int type", Pipeline, Two(), 2, {"a": "0"})
        self.assertRaisesRegex(NotImplementedError, "segment_config", Pipeline, Two(), 2, None, {"a": 0})
        self.assertRaisesRegex(NotImplementedError, "opt_shard=True", PipelineGradReducer, (), opt_shard=True)

    def test_a_cell_with_parameters_and_without_a_stage(self):
        network = nn.WithLossCell(Two(), nn.MSELoss())
        staging.require_stages(network)  # none at all: one stage
        network._backbone.b.pipeline_stage = 1
        with self.assertRaisesRegex(ValueError, "'_backbone.a' has the parameter a.bias but no stage"):
            staging.require_stages(network)
        network._backbone.pipeline_stage = 0
        staging.require_stages(network)

    def test_a_batch_that_does_not_divide(self):
        step = train_step(Two(), 4, {"_backbone.a": 0})
        with self.assertRaisesRegex(ValueError, "batch 6 does not divide into 4 micro-batches; give a multiple of 4"):
            nodes_of(step, batch(6), batch(6))

    def test_without_a_backend_enable_says_so(self):
        missing = types.SimpleNamespace(_path="/nowhere/lib.so", _library=None)
        with self.assertRaisesRegex(RuntimeError, "/nowhere/lib.so is missing.*//plugin/mindspore:wheel"):
            type(library)._load(missing)


def snapshot():
    """What MindSpore's modules and the classes that are changed hold."""
    held = {}
    for name, module in list(sys.modules.items()):
        if module is not None and name.split(".")[0] == "mindspore":
            held.update({(name, key): id(value) for key, value in vars(module).items()})
    for owner in (ms.nn.Cell, ms.ops.Primitive, ms.train.Model, api._JitExecutor, api._CellGraphExecutor):
        held.update({(owner, key): id(value) for key, value in vars(owner).items() if callable(value)})
    return held


class EnabledTest(unittest.TestCase):
    """With a stub for the library: rank 1 of 4, which owns no parameter whose name begins with "b."."""

    def setUp(self):
        super().setUp()
        ms.set_context(mode=ms.GRAPH_MODE)
        self.options = {}
        stubs = mock.patch.multiple(
            library, require=lambda: None, set=self.options.__setitem__, world=lambda: (1, 4),
            owns=lambda name: not name.startswith("b."))
        stubs.start()
        self.addCleanup(stubs.stop)
        self.addCleanup(pipeloom.disable)
        parameters._waiting.clear()

    def test_disable_leaves_everything_as_it_was(self):
        before = snapshot()
        pipeloom.enable()
        self.assertNotEqual(snapshot(), before)
        pipeloom.disable()
        self.assertEqual(snapshot(), before)

    def test_names_are_replaced_wherever_they_are(self):
        early = types.ModuleType("early")
        early.Anything = ms.parallel.nn.Pipeline
        late = types.ModuleType("late")
        with mock.patch.dict(sys.modules, early=early, late=late):
            pipeloom.enable()
            self.assertIs(early.Anything, Pipeline)
            self.assertIs(ms.nn.PipelineCell, PipelineCell)
            self.assertIs(ms.nn.wrap.PipelineCell, PipelineCell)
            self.assertIs(ms.nn.PipelineGradReducer, PipelineGradReducer)
            self.assertIs(ms.parallel.nn.PipelineGradReducer, PipelineGradReducer)
            late.Name = ms.parallel.nn.Pipeline
            pipeloom.disable()
            self.assertIs(late.Name, early.Anything)
            self.assertIsNot(late.Name, Pipeline)

    def test_communication_is_the_launchers_world(self):
        pipeloom.enable()
        for backend in (None, "nccl", "hccl", "mccl"):
            ms.communication.init(backend)
        self.assertEqual((ms.communication.get_rank(), ms.communication.get_group_size()), (1, 4))
        self.assertRaisesRegex(RuntimeError, "must be one of 'hccl'", ms.communication.init, "gloo")
        self.assertRaisesRegex(TypeError, "must be a string", ms.communication.init, 3)
        self.assertRaisesRegex(NotImplementedError, "group 'mine'", ms.communication.get_rank, "mine")

    def parallel(self, network=None):
        pipeloom.enable()
        return ms.parallel.auto_parallel.AutoParallel(network or Two())

    def test_options_of_auto_parallel_reach_the_library(self):
        parallel = self.parallel()
        parallel.pipeline(stages=2, output_broadcast=True, interleave=True)
        parallel.dataset_strategy("full_batch")
        parallel.enable_gradients_mean()
        parallel.pipeloom_settings.apply()
        self.assertEqual(self.options, {
            "stages": 2, "schedule": "interleaved", "output_broadcast": 1, "dataset_strategy": "full_batch",
            "gradients_mean": 1
        })

    def test_what_is_not_there_is_named(self):
        parallel = self.parallel()
        for name, call in {
                "zero_bubble_v": lambda: parallel.pipeline(2, scheduler="zero_bubble_v"),
                "hsdp": parallel.hsdp,
                "load_param_strategy_file": lambda: parallel.load_param_strategy_file("a"),
                "tensor parallelism": lambda: parallel.dataset_strategy(((2, 1), (1,))),
                "MatMul.shard": lambda: ops.MatMul().shard(((1, 2), (2, 1))),
                "Cell.shard": lambda: Two().shard(((2, 1),)),
                "dataset_sink_mode": lambda: ms.train.Model(Two()).train(1, None, dataset_sink_mode=True),
                "enable_parallel_optimizer": lambda: ms.set_auto_parallel_context(enable_parallel_optimizer=True),
        }.items():
            with self.subTest(name), self.assertRaisesRegex(NotImplementedError, name):
                call()
        ops.MatMul().shard(((1, 1), (1, 1)))
        parallel.dataset_strategy(((1, 1), (1,)))
        self.assertTrue(parallel.full_batch)

    def test_exceptions_of_mindspore_stay(self):
        parallel = self.parallel()
        self.assertRaisesRegex(TypeError, "'stages' must be int", parallel.pipeline, "2")
        self.assertRaisesRegex(ValueError, "'scheduler' must be", parallel.pipeline, 2, scheduler="1f1")
        self.assertRaisesRegex(ValueError, "must be 'full_batch' or", parallel.dataset_strategy, "half_batch")

    def test_stages_that_do_not_divide_the_world(self):
        parallel = self.parallel()
        parallel.pipeline(stages=3)
        with self.assertRaisesRegex(ValueError, "3 stages do not divide the world of 4 ranks"):
            parallel.pipeloom_settings.apply()

    def test_the_context_keeps_pipeline_options_from_mindspore(self):
        stock_get = context._stock_get
        pipeloom.enable()
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", pipeline_stages=2, full_batch=True,
                                     pipeline_config={"pipeline_interleave": True, "pipeline_scheduler": "1f1b"})
        self.assertEqual(ms.get_auto_parallel_context("pipeline_stages"), 2)
        self.assertEqual(stock_get("pipeline_stages"), 1)
        self.assertEqual(stock_get("parallel_mode"), "stand_alone")
        context.context.settings.apply()
        self.assertEqual((self.options["stages"], self.options["schedule"]), (2, "interleaved"))
        ms.reset_auto_parallel_context()
        self.assertEqual(ms.get_auto_parallel_context("pipeline_stages"), 1)

    def test_with_stages_in_the_context_what_has_stages_goes_to_the_backend(self):
        pipeloom.enable()
        ms.set_auto_parallel_context(pipeline_stages=2)
        pipeline = ms.nn.PipelineCell(Two(), 2, {"a": 0, "b": 1})
        other = Two()
        built = []
        with mock.patch.object(graphs, "_stock_cell_compile",
                               lambda executor, cell, *_, jit_config_dict, **__: built.append(jit_config_dict)):
            pipeline.compile(batch())
            other.compile(batch())
        self.assertEqual([(config or {}).get("backend", "") for config in built], ["pipeloom", ""])

    def test_another_device_gets_one_warning(self):
        pipeloom.enable()
        context._warned.clear()
        with mock.patch.object(context.log, "warning") as warning:
            ms.set_context(device_target="Ascend")
            ms.set_context(device_target="GPU")
        ours = [call for call in warning.call_args_list if "runs on the CPU" in call.args[0]]
        self.assertEqual(len(ours), 1)
        self.assertEqual(ms.get_context("device_target"), "CPU")

    def test_a_rank_draws_all_parameters_and_keeps_its_own(self):

        def make(name):
            return Parameter(initializer("normal", [3, 4], ms.float32), name=name)

        ms.set_seed(7)
        expected = [make(name).asnumpy() for name in ("a.w", "b.w", "a.v")]
        pipeloom.enable()
        ms.set_seed(7)
        with ms.nn.utils.no_init_parameters():
            made = [make(name) for name in ("a.w", "b.w", "a.v")]
        self.assertTrue(all(parameter.has_init for parameter in made))
        parameters.draw()
        self.assertEqual([parameter.has_init for parameter in made], [False, True, False])
        np.testing.assert_array_equal(made[0].asnumpy(), expected[0])
        np.testing.assert_array_equal(made[2].asnumpy(), expected[2])


if __name__ == "__main__":
    xml_main.main()
