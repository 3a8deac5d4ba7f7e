"""Trains a small network on handwritten digits in two pipeline stages: MindSpore's own interfaces, and nothing else.

    pipeloom-run -n 2 distributed_pipeline_parallel.py --epochs 10      digits from the folder $DATA_PATH

With --interleave the stages take turns along the network, and each rank has several chunks of it.
"""

import argparse
import math
import os

import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn, ops
from mindspore.common.initializer import HeUniform, initializer
from mindspore.communication import get_rank, init
from mindspore.nn.utils import no_init_parameters
from mindspore.parallel.auto_parallel import AutoParallel
from mindspore.parallel.nn import Pipeline, PipelineGradReducer

BATCH = 32
MICRO_BATCHES = 4
STEPS_PER_LINE = 10

STAGES = {
    "_backbone.flatten": 0, "_backbone.layer1": 0, "_backbone.relu1": 0,
    "_backbone.layer2": 1, "_backbone.relu2": 1, "_backbone.layer3": 1
}
INTERLEAVED_STAGES = {
    "_backbone.flatten": 0, "_backbone.layer1": 1, "_backbone.relu1": 0,
    "_backbone.layer2": 1, "_backbone.relu2": 0, "_backbone.layer3": 1
}


def parse_arguments():
    parser = argparse.ArgumentParser(description="Trains on digits in two pipeline stages.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=0, help="ends after so many steps (default: all epochs)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data_dir", default=os.getenv("DATA_PATH"), help="folder of IDX files (default: $DATA_PATH)")
    parser.add_argument("--losses_out", help="rank 0 writes the loss of each step to this file, one a line")
    parser.add_argument("--interleave", action="store_true")
    parser.add_argument("--no_print", action="store_true", help="layer1 does not print its result")
    options = parser.parse_args()
    if not options.data_dir:
        parser.error("give --data_dir, or set DATA_PATH")
    return options


class MatMulCell(nn.Cell):
    """Multiplies by its parameter, and prints what comes out."""

    def __init__(self, prints):
        super().__init__()
        self.param = ms.Parameter(initializer(HeUniform(math.sqrt(5)), [28 * 28, 512]), name="param")
        self.matmul = ops.MatMul()
        self.print = ops.Print()
        self.prints = prints

    def construct(self, x):
        out = self.matmul(x, self.param)
        if self.prints:
            self.print("out is:", out)
        return out


class Network(nn.Cell):
    """Three layers."""

    def __init__(self, prints):
        super().__init__()
        self.flatten = nn.Flatten()
        self.layer1 = MatMulCell(prints)
        self.relu1 = nn.ReLU()
        self.layer2 = nn.Dense(512, 512)
        self.relu2 = nn.ReLU()
        self.layer3 = nn.Dense(512, 10)

    def construct(self, x):
        x = self.relu1(self.layer1(self.flatten(x)))
        x = self.relu2(self.layer2(x))
        return self.layer3(x)


def create_dataset(folder):
    """Batches of images [32, 1, 28, 28], normalised, and labels [32]."""
    dataset = ds.MnistDataset(folder)
    images = [ds.vision.Rescale(1.0 / 255.0, 0), ds.vision.Normalize(mean=(0.1307,), std=(0.3081,)),
              ds.vision.HWC2CHW()]
    dataset = dataset.map(images, "image")
    dataset = dataset.map(ds.transforms.TypeCast(ms.int32), "label")
    return dataset.batch(BATCH, drop_remainder=True)


def make_train_step(options):
    """A function of (images, labels) that does one step and gives (loss, gradients)."""
    with no_init_parameters():
        net = Network(not options.no_print)
        optimizer = nn.SGD(net.trainable_params(), 1e-2)
        reducer = PipelineGradReducer(optimizer.parameters, opt_shard=False)
    stages = INTERLEAVED_STAGES if options.interleave else STAGES
    net_with_loss = Pipeline(nn.WithLossCell(net, nn.CrossEntropyLoss()), MICRO_BATCHES, stage_config=stages)
    net_with_loss.set_train()

    def forward(inputs, target):
        return net_with_loss(inputs, target)

    grad_fn = ops.value_and_grad(forward, None, optimizer.parameters)

    @ms.jit
    def train_one_step(inputs, target):
        loss, grads = grad_fn(inputs, target)
        grads = reducer(grads)
        optimizer(grads)
        return loss, grads

    parallel = AutoParallel(train_one_step, parallel_mode="semi_auto")
    parallel.pipeline(stages=2, interleave=options.interleave)
    return parallel


def main():
    options = parse_arguments()
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    ms.set_seed(options.seed)
    train_step = make_train_step(options)
    losses = []
    for epoch in range(options.epochs):
        for step, (image, label) in enumerate(create_dataset(options.data_dir)):
            loss, _ = train_step(image, label)
            losses.append(float(loss.asnumpy()))
            if step % STEPS_PER_LINE == 0:
                print(f"epoch: {epoch}, step: {step}, loss is {loss}", flush=True)
            if len(losses) == options.steps:
                break
        if len(losses) == options.steps:
            break
    if options.losses_out and get_rank() == 0:
        with open(options.losses_out, "w", encoding="utf-8") as out:
            out.writelines(f"{loss!r}\n" for loss in losses)


if __name__ == "__main__":
    main()
