"""init, get_rank and get_group_size, in place of MindSpore's."""

from mindspore.communication import management as stock

from pipeloom.library import library

_BACKENDS = ("hccl", "nccl", "mccl")
_WORLDS = (stock.HCCL_WORLD_COMM_GROUP, stock.NCCL_WORLD_COMM_GROUP, stock.MCCL_WORLD_COMM_GROUP)


def init(backend_name=None):
    """Meets the other ranks of the run; one rank alone where no launcher has started more. The backend's name is
    checked, and means nothing."""
    if backend_name is not None and not isinstance(backend_name, str):
        raise TypeError("For 'init', the argument 'backend_name' must be a string, "
                        f"but got the type : {type(backend_name)}")
    if backend_name is not None and backend_name not in _BACKENDS:
        raise RuntimeError("For 'init', the argument 'backend_name' must be one of 'hccl', 'nccl' and 'mccl', "
                           f"but got 'backend_name' : {backend_name}")
    library.world()


def release():
    """Nothing: the ranks part when the script ends."""


def _require_world(who, group):
    if not isinstance(group, str):
        raise TypeError(f"For '{who}', the argument 'group' must be type of string, "
                        f"but got 'group' type : {type(group)}.")
    if group not in _WORLDS:
        raise NotImplementedError(f"{who} of the group '{group}' is not there yet with pipeloom; there is the group of "
                                  "all ranks")


def get_rank(group=stock.HCCL_WORLD_COMM_GROUP):
    """This process's rank among all."""
    _require_world("get_rank", group)
    return library.world()[0]


def get_group_size(group=stock.HCCL_WORLD_COMM_GROUP):
    """How many ranks there are."""
    _require_world("get_group_size", group)
    return library.world()[1]
