"""Primitives that tell the backend where micro-batches and stages begin and end.

They are identities but for shapes, and have no kernel: only the pipeloom backend gives them meaning. Each gradient rule
emits a primitive of its own, since an identity would leave no trace in the backward graph.

    marker                               input           output
    PipeloomSlice(micro, index)          [n, ...]        [n / micro, ...]   `index`: number of the step's argument
    PipeloomMerge(micro, reduce="sum")   any shape       the same           sum over micro-batches, such as the loss
    PipeloomMerge(micro, "concat")       [n, ...]        [n * micro, ...]
    PipeloomBorder(cell, stage, side)    any shape       the same           side 0: into the cell, 1: out of it
    PipeloomReduce(parameter, scale)     any shape       the same           the gradient of a parameter; 1 / scale
"""

from mindspore.ops._grad_experimental.grad_base import bprop_getters
from mindspore.ops.primitive import PrimitiveWithInfer, prim_attr_register


def _divided(shape, micro):
    if not shape:
        raise ValueError(f"an argument of the Pipeline's network is a scalar: it does not divide into {micro} "
                         "micro-batches; give it a leading batch axis")
    if shape[0] == -1:
        raise ValueError("an argument of the Pipeline's network has a dynamic batch; give it a static shape")
    if shape[0] % micro:
        below = max(count for count in range(1, micro + 1) if shape[0] % count == 0)
        raise ValueError(f"batch {shape[0]} does not divide into {micro} micro-batches; give a multiple of {micro} or "
                         f"micro_size={below}")
    return [shape[0] // micro, *shape[1:]]


class _Marker(PrimitiveWithInfer):
    """The identity."""

    def __call__(self, x):
        """Outside graphs, where a network has no stages."""
        return x

    def infer_shape(self, shape):
        return shape

    def infer_dtype(self, dtype):
        return dtype


class _MicroBatchMarker(_Marker):
    """Has another shape than its input."""

    def __call__(self, x):
        raise RuntimeError("Pipeline runs in graph mode only; call mindspore.set_context(mode=mindspore.GRAPH_MODE)")


class PipeloomSlice(_MicroBatchMarker):
    """The current micro-batch of an argument."""

    @prim_attr_register
    def __init__(self, micro, index):
        """For the attributes."""

    def infer_shape(self, shape):
        return _divided(shape, self.micro)


class PipeloomSliceGrad(_Marker):
    """The gradient of an argument, put together from those of micro-batches."""

    @prim_attr_register
    def __init__(self, micro, index):
        """For the attributes."""

    def infer_shape(self, shape):
        return [shape[0] * self.micro, *shape[1:]]


class PipeloomMerge(_MicroBatchMarker):
    """The result of the step, from those of micro-batches."""

    @prim_attr_register
    def __init__(self, micro, reduce):
        """For the attributes."""

    def infer_shape(self, shape):
        return [shape[0] * self.micro, *shape[1:]] if self.reduce == "concat" else shape


class PipeloomMergeGrad(_Marker):
    """The gradient of one micro-batch's result."""

    @prim_attr_register
    def __init__(self, micro, reduce):
        """For the attributes."""

    def infer_shape(self, shape):
        return _divided(shape, self.micro) if self.reduce == "concat" else shape


class PipeloomBorder(_Marker):
    """A value that goes into a cell with a stage, or comes out of it."""

    @prim_attr_register
    def __init__(self, cell, stage, side):
        """For the attributes."""


class PipeloomBorderGrad(_Marker):
    """The gradient of such a value."""

    @prim_attr_register
    def __init__(self, cell, stage, side):
        """For the attributes."""


class PipeloomReduce(_Marker):
    """A parameter's gradient of the whole step, divided by `scale`."""

    @prim_attr_register
    def __init__(self, parameter, scale):
        """For the attributes."""

    def __call__(self, x):
        return x / self.scale


@bprop_getters.register(PipeloomSlice)
def _slice_gradient(self):
    gradient = PipeloomSliceGrad(self.micro, self.index)

    def bprop(x, out, dout):
        return (gradient(dout),)

    return bprop


@bprop_getters.register(PipeloomMerge)
def _merge_gradient(self):
    gradient = PipeloomMergeGrad(self.micro, self.reduce)

    def bprop(x, out, dout):
        return (gradient(dout),)

    return bprop


@bprop_getters.register(PipeloomBorder)
def _border_gradient(self):
    gradient = PipeloomBorderGrad(self.cell, self.stage, self.side)

    def bprop(x, out, dout):
        return (gradient(dout),)

    return bprop
