"""Trains a small network with MindSpore's own interfaces and writes the losses: by itself on one stock process, where
MindSpore's Pipeline is a loop over micro-batches, or under pipeloom-run.

    oracle_script.py NETWORK OPTIMIZER STAGES LOSSES_OUT [--regularized]

With --regularized there is an L2 term outside the pipeline, a scale of the loss, and a clipped norm of the gradients.
"""

import sys

import numpy as np

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init
from mindspore.parallel.auto_parallel import AutoParallel
from mindspore.parallel.nn import Pipeline, PipelineGradReducer

STEPS = 30
MICRO_BATCHES = 4
BATCH = 16
WORDS = 8  # of a text
VOCABULARY = 16
WIDTH = 12
LOSS_SCALE = 64.0


class MatMulCell(nn.Cell):
    """Its parameter is no Dense's."""

    def __init__(self):
        super().__init__()
        self.param = Parameter(ms.common.initializer.initializer("normal", [20, 24]), name="param")
        self.matmul = ops.MatMul()

    def construct(self, x):
        return self.matmul(x, self.param)


class Mlp(nn.Cell):
    """That of the tutorial, smaller; with a layer norm where `norm` is set."""

    def __init__(self, norm):
        super().__init__()
        self.flatten = nn.Flatten()
        self.layer1 = MatMulCell()
        self.relu1 = nn.LayerNorm((24,)) if norm else nn.ReLU()
        self.layer2 = nn.Dense(24, 24)
        self.relu2 = nn.ReLU()
        self.layer3 = nn.Dense(24, 10)

    def construct(self, x):
        x = self.relu1(self.layer1(self.flatten(x)))
        return self.layer3(self.relu2(self.layer2(x)))


class Mean(nn.Cell):
    """Over the words of a text."""

    def construct(self, x):
        return x.mean(1)


class Classifier(nn.Cell):
    """Of texts, by the mean of their words."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.mean = Mean()
        self.hidden = nn.Dense(WIDTH, WIDTH, activation="tanh")
        self.head = nn.Dense(WIDTH, 10)

    def construct(self, x):
        return self.head(self.hidden(self.mean(self.embedding(x))))


class Attention(nn.Cell):
    """Causal, with two heads."""

    def __init__(self):
        super().__init__()
        self.query = nn.Dense(WIDTH, WIDTH)
        self.key = nn.Dense(WIDTH, WIDTH)
        self.value = nn.Dense(WIDTH, WIDTH)
        self.out = nn.Dense(WIDTH, WIDTH)
        self.scores = ops.BatchMatMul(transpose_b=True)
        self.weigh = ops.BatchMatMul()
        self.softmax = nn.Softmax(axis=-1)
        self.mask = Tensor(np.triu(np.full((WORDS, WORDS), -1e9, np.float32), 1))

    def heads(self, x):
        return x.reshape(-1, WORDS, 2, WIDTH // 2).transpose(0, 2, 1, 3)

    def construct(self, x):
        query, key, value = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        weights = self.softmax(self.scores(query, key) / (WIDTH // 2)**0.5 + self.mask)
        return self.out(self.weigh(weights, value).transpose(0, 2, 1, 3).reshape(-1, WORDS, WIDTH))


class Block(nn.Cell):
    """Of a GPT."""

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm((WIDTH,))
        self.attention = Attention()
        self.norm2 = nn.LayerNorm((WIDTH,))
        self.wide = nn.Dense(WIDTH, 4 * WIDTH)
        self.gelu = nn.GELU()
        self.narrow = nn.Dense(4 * WIDTH, WIDTH)

    def construct(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(self.gelu(self.wide(self.norm2(x))))


class Embeddings(nn.Cell):
    """Gives the table too, which the head shares."""

    def __init__(self):
        super().__init__()
        self.table = Parameter(ms.common.initializer.initializer("normal", [VOCABULARY, WIDTH]), name="table")
        self.places = Parameter(ms.common.initializer.initializer("normal", [WORDS, WIDTH]), name="places")
        self.gather = ops.Gather()

    def construct(self, x):
        return self.gather(self.table, x, 0) + self.places, self.table.value()


class Head(nn.Cell):
    """The logits of each word's successor."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm((WIDTH,))
        self.matmul = ops.MatMul(transpose_b=True)

    def construct(self, x, table):
        return self.matmul(self.norm(x).reshape(-1, WIDTH), table)


class Gpt(nn.Cell):
    """Two blocks, the embedding tied."""

    def __init__(self):
        super().__init__()
        self.embeddings = Embeddings()
        self.block1 = Block()
        self.block2 = Block()
        self.head = Head()

    def construct(self, x):
        x, table = self.embeddings(x)
        return self.head(self.block2(self.block1(x)), table)


class GptLoss(nn.Cell):
    """Takes the labels as a matrix, a row a text."""

    def __init__(self):
        super().__init__()
        self.loss = nn.CrossEntropyLoss()

    def construct(self, logits, labels):
        return self.loss(logits, labels.reshape(-1))


def texts(rng):
    return rng.randint(0, VOCABULARY, (BATCH, WORDS)).astype(np.int32)


def images(rng):
    return rng.rand(BATCH, 1, 4, 5).astype(np.float32)


def classes(rng):
    return rng.randint(0, 10, BATCH).astype(np.int32)


# Network, loss, inputs, labels, and the cells of four stages; of fewer stages, neighbours share one.
NETWORKS = {
    "mlp": (lambda: Mlp(False), nn.CrossEntropyLoss, images, classes,
            [["flatten", "layer1"], ["relu1", "layer2"], ["relu2"], ["layer3"]]),
    "norm": (lambda: Mlp(True), nn.CrossEntropyLoss, images, classes,
             [["flatten", "layer1"], ["relu1"], ["layer2", "relu2"], ["layer3"]]),
    "classifier": (Classifier, nn.CrossEntropyLoss, texts, classes, [["embedding"], ["mean"], ["hidden"], ["head"]]),
    "gpt": (Gpt, GptLoss, texts, texts, [["embeddings"], ["block1"], ["block2"], ["head"]]),
}
OPTIMIZERS = {
    "sgd": lambda parameters: nn.SGD(parameters, 0.05),
    "momentum": lambda parameters: nn.Momentum(parameters, 0.05, 0.9, weight_decay=1e-4),
    "adam": lambda parameters: nn.Adam(parameters, 0.01),
    "adamw": lambda parameters: nn.AdamWeightDecay(parameters, 0.01, weight_decay=0.01),
    "decaying": lambda parameters: nn.SGD(parameters, nn.ExponentialDecayLR(0.1, 0.9, 5)),
}


def main():
    network_name, optimizer_name, stages, losses_out = sys.argv[1:5]
    regularized = sys.argv[5:] == ["--regularized"]
    stages = int(stages)
    make_network, make_loss, make_inputs, make_labels, cells = NETWORKS[network_name]
    ms.set_context(mode=ms.GRAPH_MODE)
    if stages > 1:
        init()
    rank, size = (get_rank(), get_group_size()) if stages > 1 else (0, 1)
    if size != stages:
        sys.exit(f"{size} ranks for {stages} stages")
    ms.set_seed(1)
    network = make_network()
    optimizer = OPTIMIZERS[optimizer_name](network.trainable_params())
    config = {"_backbone." + cell: i * stages // 4 for i, names in enumerate(cells) for cell in names}
    pipeline = Pipeline(nn.WithLossCell(network, make_loss()), MICRO_BATCHES,
                        stage_config=config if stages > 1 else None)
    pipeline.set_train()

    penalized = optimizer.parameters[0]

    def forward(x, y):
        loss = pipeline(x, y)
        if regularized:
            loss = (loss + 0.01 * ops.square(penalized).sum()) * LOSS_SCALE
        return loss

    grad = ops.value_and_grad(forward, None, optimizer.parameters)
    scale = LOSS_SCALE if regularized else 1.0
    reducer = PipelineGradReducer(optimizer.parameters, scale, opt_shard=False) if stages > 1 else None
    unscale = ops.MultitypeFuncGraph("unscale")

    @unscale.register("Tensor")
    def unscale_tensor(gradient):
        return gradient * (1.0 / LOSS_SCALE)

    @ms.jit
    def step(x, y):
        loss, grads = grad(x, y)
        if reducer is not None:
            grads = reducer(grads)
        elif regularized:
            grads = ops.HyperMap()(unscale, grads)
        if regularized:
            grads = ops.clip_by_global_norm(grads, 0.5)
        optimizer(grads)
        return loss

    run = step
    if stages > 1:
        run = AutoParallel(step, parallel_mode="semi_auto")
        run.pipeline(stages=stages)
    rng = np.random.RandomState(1)
    losses = []
    for _ in range(STEPS):
        inputs, labels = Tensor(make_inputs(rng)), Tensor(make_labels(rng))
        losses.append(float(run(inputs, labels).asnumpy()))
    if rank == stages - 1:
        with open(losses_out, "w", encoding="utf-8") as file:
            file.writelines(f"{loss!r}\n" for loss in losses)


if __name__ == "__main__":
    main()
