"""Trains a network without values at first, over the ranks of pipeloom-run, and prints what its parameters are:
parameters_script.py function|cell WIDTH. For parameters_test.py."""

import sys

import numpy as np

import mindspore as ms
import pipeloom
from mindspore import Tensor, nn, ops
from mindspore.communication import init
from mindspore.nn.utils import no_init_parameters
from mindspore.parallel.auto_parallel import AutoParallel
from mindspore.parallel.nn import Pipeline, PipelineGradReducer

LAYERS = 16
STAGES = 4

kind, width = sys.argv[1], int(sys.argv[2])


def resident_bytes():
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS"))


def bytes_of(parameters):
    return sum(parameter.nbytes for parameter in parameters)


def sums_of(cell):
    return [float(np.abs(parameter.asnumpy()).sum()) for parameter in cell.get_parameters()]


ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_seed(1)
with no_init_parameters():
    network = nn.SequentialCell(*[nn.Dense(width, width, has_bias=False) for _ in range(LAYERS)])
    optimizer = nn.Momentum(network.trainable_params(), 1e-2, 0.9)
    reducer = PipelineGradReducer(optimizer.parameters)
stages = {f"_backbone.{layer}": layer * STAGES // LAYERS for layer in range(LAYERS)}
pipeline = Pipeline(nn.WithLossCell(network, nn.MSELoss()), 4, stages)
gradients_of = ops.value_and_grad(pipeline, None, optimizer.parameters)


@ms.jit
def train_one_step(inputs, target):
    loss, gradients = gradients_of(inputs, target)
    optimizer(reducer(gradients))
    return loss


parallel = AutoParallel(train_one_step if kind == "function" else nn.TrainOneStepCell(pipeline, optimizer))
parallel.pipeline(stages=STAGES)
x = Tensor(np.ones((8, width), np.float32))
before = resident_bytes()
for _ in range(2):
    loss = parallel(x, x)
everything = {id(parameter): parameter for cell in (network, optimizer) for parameter in cell.get_parameters()}.values()
held = [parameter for parameter in everything if not parameter.has_init]
print("bytes of all:", bytes_of(everything))
print("bytes held:", bytes_of(held))
print("growth:", resident_bytes() - before)
pipeloom.gather_parameters(network)
print("sums:", sums_of(network))
print("loss:", float(parallel(x, x).asnumpy()))
