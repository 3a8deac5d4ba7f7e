"""Pipeline and PipelineCell, in place of MindSpore's."""

from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell

from pipeloom.markers import PipeloomMerge, PipeloomSlice
from pipeloom.staging import apply_stage_config, mark_network

# Of a network that takes *args: markers are made before the graph is.
_MOST_ARGUMENTS = 64


class PipelineCell(Cell):
    """Cuts the batch into micro-batches and gives the sum of the network's results, as MindSpore's does.

    The graph has the network once, for one micro-batch, whatever `micro_size` is. `micro_size` is 1 or more, also less
    than there are stages.

    Args:
        network (Cell): what runs on each micro-batch.
        micro_size (int): the number of micro-batches.
        stage_config (dict, optional): stage of each cell by its path in the network; the longest path wins.
        segment_config (dict, optional): not there yet.

    Raises:
        TypeError: `network` is not a cell, or `micro_size` not an int.
        ValueError: `micro_size` is less than 1.
        KeyError: `stage_config` has a name that no cell of the network has.
        NotImplementedError: `segment_config` is given.
    """

    def __init__(self, network, micro_size, stage_config=None, segment_config=None):
        super().__init__(auto_prefix=False)
        self.network = network
        self.micro_size = micro_size
        if not isinstance(network, Cell):
            raise TypeError("For 'PipelineCell', the argument 'network' must cell type, "
                            f"but got the type : {type(network)}.")
        if not isinstance(micro_size, int) or isinstance(micro_size, bool):
            raise TypeError("For 'PipelineCell', the argument 'micro_size' must be integer, "
                            f"but got the type : {type(micro_size)}.")
        if micro_size <= 0:
            raise ValueError("For 'PipelineCell', the argument 'micro_size' must be large than 0, "
                             f"but got {micro_size}.")
        if segment_config is not None:
            raise NotImplementedError("For 'PipelineCell', the argument 'segment_config' is not there yet with "
                                      "pipeloom")
        if stage_config is not None:
            apply_stage_config(network, stage_config, "PipelineCell")
        mark_network(network)
        self._slices = tuple(PipeloomSlice(micro_size, index) for index in range(_MOST_ARGUMENTS))
        self._merge = PipeloomMerge(micro_size, "sum")
        self._get_attr_from_cell(network)

    def construct(self, *args):
        """The sum over micro-batches. Tensors are cut along their first axis; what is no tensor is the same for all."""
        micro = ()
        for index in range(len(args)):
            if isinstance(args[index], Tensor):
                micro += (self._slices[index](args[index]),)
            else:
                micro += (args[index],)
        return self._merge(self.network(*micro))

    def shard(self, in_strategy, out_strategy=None, parameter_plan=None, device="Ascend", level=0):
        """ValueError, as MindSpore's."""
        raise ValueError("For 'PipelineCell', no 'shard' on 'PipelineCell' is allowed.")


class Pipeline(PipelineCell):
    """PipelineCell, under its newer name."""
