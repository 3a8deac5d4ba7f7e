"""A small training script that does one thing wrong, or nothing: faulty_script.py KIND. For faults_test.py."""

import sys
import time

import numpy as np

import mindspore as ms
from mindspore import Tensor, nn, ops
from mindspore.communication import get_rank, init
from mindspore.parallel.auto_parallel import AutoParallel
from mindspore.parallel.nn import Pipeline

STEPS = 5

kind = sys.argv[1]
ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_seed(1)
network = nn.SequentialCell(nn.Dense(16, 16), nn.ReLU(), nn.Dense(16, 10))
optimizer = nn.SGD(network.trainable_params(), 0.1)
stages = {
    "unknown name": {"_backbone.0": 0, "_backbone.3": 1},
    "missed cell": {"_backbone.0": 0},
}.get(kind, {"_backbone.0": 0, "_backbone.2": 1})
pipeline = Pipeline(nn.WithLossCell(network, nn.CrossEntropyLoss()), 4, stages)
gradients_of = ops.value_and_grad(pipeline, None, optimizer.parameters)


@ms.jit
def step(inputs, target):
    loss, gradients = gradients_of(inputs, target)
    optimizer(gradients)
    return loss


parallel = AutoParallel(step)
parallel.pipeline(stages=3 if kind == "stages" else 2)
rows = 30 if kind == "batch" else 32
x = Tensor(np.ones((rows, 16), np.float64 if kind == "type" else np.float32))
y = Tensor(np.arange(rows) % 10, ms.int32)
for number in range(STEPS - (kind == "unequal batches" and get_rank())):
    if kind == "exception" and get_rank() == 1 and number == 2:
        raise ValueError("label 12 is out of range")
    if kind == "killed" and number == 2:
        print("ready", flush=True)
        if get_rank() == 1:
            time.sleep(300)
    print("loss", parallel(x, y), flush=True)
print("done", flush=True)
