"""Predicts with four pipeline stages and a table that the first and the last share: MindSpore's own interfaces, and
nothing else.

    pipeloom-run -n 4 --log_dir pipeline_inference_logs distributed_pipeline_parallel_inference.py
"""

import argparse

import numpy as np

import mindspore as ms
from mindspore import Parameter, Tensor, lazy_inline, nn, ops
from mindspore.common.initializer import initializer
from mindspore.communication import init
from mindspore.parallel import sync_pipeline_shared_parameters
from mindspore.parallel.auto_parallel import AutoParallel

VOCABULARY = 32
EMBEDDING = 32
BATCH = 8
MICRO_BATCHES = 4


def parse_arguments():
    parser = argparse.ArgumentParser(description="Predicts with four pipeline stages.")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


class VocabEmbedding(nn.Cell):
    """Rows of a table; and the table."""

    def __init__(self, vocabulary, embedding):
        super().__init__()
        self.embedding_table = Parameter(initializer("ones", [vocabulary, embedding]), name="embedding")
        self.gather = ops.Gather()

    def construct(self, ids):
        rows = self.gather(self.embedding_table, ids, 0)
        return rows.squeeze(1), self.embedding_table.value()


class Head(nn.Cell):
    """Multiplies by the transposed table."""

    def __init__(self):
        super().__init__()
        self.matmul = ops.MatMul(transpose_b=True)

    def construct(self, state, table):
        return self.matmul(state, table)


class Network(nn.Cell):
    """One cell a stage."""

    @lazy_inline
    def __init__(self):
        super().__init__()
        self.word_embedding = VocabEmbedding(VOCABULARY, EMBEDDING)
        self.layer1 = nn.Dense(EMBEDDING, EMBEDDING)
        self.layer2 = nn.Dense(EMBEDDING, EMBEDDING)
        self.head = Head()

    def construct(self, ids):
        state, table = self.word_embedding(ids)
        state = self.layer1(state)
        state = self.layer2(state)
        return self.head(state, table)


class PipelineCellInference(nn.Cell):
    """Runs the network on each micro-batch."""

    def __init__(self, network, micro_batches):
        super().__init__()
        self.network = network
        self.micro_batches = micro_batches
        self.concat = ops.Concat()

    def construct(self, ids):
        results = ()
        size = ids.shape[0] // self.micro_batches
        for i in range(self.micro_batches):
            results = results + (self.network(ids[size * i:size * (i + 1)]),)
        return self.concat(results)


def main():
    options = parse_arguments()
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    ms.set_seed(options.seed)
    net = Network()
    net.word_embedding.pipeline_stage = 0
    net.layer1.pipeline_stage = 1
    net.layer2.pipeline_stage = 2
    net.head.pipeline_stage = 3
    inference_network = PipelineCellInference(net, MICRO_BATCHES)
    inference_network.set_train(False)
    parallel_net = AutoParallel(inference_network, parallel_mode="semi_auto")
    parallel_net.dataset_strategy("full_batch")
    parallel_net.pipeline(stages=4, output_broadcast=True)
    ids = Tensor(np.arange(BATCH).reshape(BATCH, 1), ms.int32)
    parallel_net.compile(ids)
    sync_pipeline_shared_parameters(parallel_net)
    print(parallel_net(ids).asnumpy())


if __name__ == "__main__":
    main()
