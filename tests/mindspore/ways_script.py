"""Trains a small network with MindSpore's interfaces, in one process, and writes the losses: ways_script.py WAY OUT.

    stock                          MindSpore alone
    model, lazy                    AutoParallel in Model.train; with lazy_inline
    context                        set_auto_parallel_context and nn.PipelineCell, in Model.train
    cell                           AutoParallel of a train network
    jit, config                    the backend by its name, after `import pipeloom` alone
"""

import sys

import numpy as np

import mindspore as ms
import mindspore.dataset as ds
from mindspore import Tensor, lazy_inline, nn, ops
from mindspore.communication import init
from mindspore.parallel.auto_parallel import AutoParallel
from mindspore.parallel.nn import Pipeline
from mindspore.train import Callback, Model

way, losses_out = sys.argv[1:]
if way != "stock":
    import pipeloom
    if way not in ("jit", "config"):
        pipeloom.enable()  # the names above are replaced too
        init()


class Network(nn.Cell):
    """Two layers with a norm between them."""

    def __init__(self):
        super().__init__()
        self.first = nn.Dense(16, 32)
        self.norm = nn.LayerNorm((32,))
        self.last = nn.Dense(32, 10)

    def construct(self, x):
        return self.last(ops.relu(self.norm(self.first(x))))


class LazyNetwork(Network):
    """The same."""

    @lazy_inline
    def __init__(self):
        super().__init__()


class Losses(Callback):
    """Notes the loss of each step."""

    def __init__(self):
        super().__init__()
        self.noted = []

    def step_end(self, run_context):
        self.noted.append(float(run_context.original_args().net_outputs.asnumpy()))


def main():
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(3)
    random = np.random.RandomState(0)
    images = random.rand(6 * 32, 16).astype(np.float32)
    labels = random.randint(0, 10, 6 * 32).astype(np.int32)
    network = LazyNetwork() if way == "lazy" else Network()
    optimizer = nn.Momentum(network.trainable_params(), nn.ExponentialDecayLR(0.1, 0.9, 2), 0.9)
    with_loss = nn.WithLossCell(network, nn.CrossEntropyLoss())
    stages = {"_backbone.first": 0, "_backbone.norm": 0, "_backbone.last": 1}
    if way == "context":
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", pipeline_stages=2)
        pipeline = nn.PipelineCell(with_loss, 4, stages)
    elif way in ("jit", "config"):
        pipeline = pipeloom.Pipeline(with_loss, 4, stages)
    else:
        pipeline = Pipeline(with_loss, 4, stages)
    if way in ("stock", "model", "lazy", "context"):
        losses = train_by_model(pipeline, optimizer, images, labels)
    else:
        step = make_step(pipeline, optimizer)
        losses = [float(step(Tensor(images[i:i + 32]), Tensor(labels[i:i + 32])).asnumpy()) for i in range(0, 192, 32)]
    with open(losses_out, "w", encoding="utf-8") as out:
        out.writelines(f"{loss!r}\n" for loss in losses)


def train_by_model(pipeline, optimizer, images, labels):
    if way in ("model", "lazy"):
        pipeline = AutoParallel(pipeline)
        pipeline.pipeline(stages=2)
    losses = Losses()
    data = ds.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=False).batch(32)
    Model(pipeline, optimizer=optimizer).train(1, data, callbacks=[losses], dataset_sink_mode=False)
    return losses.noted


def make_step(pipeline, optimizer):
    if way == "jit":
        gradients_of = ops.value_and_grad(pipeline, None, optimizer.parameters)

        @ms.jit(backend="pipeloom")
        def step(image, label):
            loss, gradients = gradients_of(image, label)
            optimizer(gradients)
            return loss

        return step
    train_network = nn.TrainOneStepCell(pipeline, optimizer)
    train_network.set_train()
    if way == "config":
        train_network.set_jit_config(ms.JitConfig(jit_level="O0", backend="pipeloom"))
        return train_network
    parallel = AutoParallel(train_network)
    parallel.pipeline(stages=2)
    return parallel


if __name__ == "__main__":
    main()
