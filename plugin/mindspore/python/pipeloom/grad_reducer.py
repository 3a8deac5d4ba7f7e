"""PipelineGradReducer, in place of MindSpore's."""

from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell

from pipeloom.markers import PipeloomReduce


class PipelineGradReducer(Cell):
    """Gradients of the whole step from those of micro-batches: summed over micro-batches, over the stages that share a
    parameter, and over data ranks, and divided by `scale_sense`.

    Args:
        parameters (list): those that the gradients belong to, in the same order.
        scale_sense (float, optional): what the loss was multiplied by.
        opt_shard (bool, optional): not there yet.

    Raises:
        NotImplementedError: `opt_shard` is True.
    """

    def __init__(self, parameters, scale_sense=1.0, opt_shard=None):
        super().__init__(auto_prefix=False)
        if opt_shard:
            raise NotImplementedError("For 'PipelineGradReducer', opt_shard=True (a sharded optimizer, hsdp) is not "
                                      "there yet with pipeloom; leave it False")
        if isinstance(scale_sense, Tensor):
            scale_sense = float(scale_sense.asnumpy())
        self.opt_shard = False
        self.scale_sense = float(scale_sense)
        self._reduce = tuple(PipeloomReduce(parameter.name, self.scale_sense) for parameter in parameters)

    def construct(self, grads):
        """A tuple of gradients, as value_and_grad gives it."""
        reduced = ()
        for index in range(len(grads)):
            reduced += (self._reduce[index](grads[index]),)
        return reduced
