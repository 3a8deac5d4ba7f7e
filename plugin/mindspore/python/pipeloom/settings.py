"""How graphs are to run: what AutoParallel and set_auto_parallel_context have been told."""

import dataclasses

from pipeloom.library import library

# MindSpore's schedulers: what the library calls them; "" is 1f1b for what trains, forward for what does not.
_SCHEDULES = {"1f1b": "", "gpipe": "gpipe"}
_LATER_SCHEDULES = ("seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")


@dataclasses.dataclass
class Settings:
    """MindSpore's names and defaults."""
    stages: int = 1
    output_broadcast: bool = False
    interleave: bool = False
    scheduler: str = "1f1b"
    dataset_strategy: str = "data_parallel"
    gradients_mean: bool = False

    def check(self):
        """NotImplementedError for what a later release brings."""
        if self.scheduler in _LATER_SCHEDULES:
            raise NotImplementedError(f"the pipeline scheduler '{self.scheduler}' is not there yet with pipeloom; "
                                      "choose '1f1b' or 'gpipe', or '1f1b' with interleave=True")
        if self.interleave and self.scheduler != "1f1b":
            raise ValueError(f"interleave=True goes with scheduler='1f1b', not with '{self.scheduler}'")

    def apply(self):
        """Tells the library, for graphs that are built from now on."""
        self.check()
        _, size = library.world()
        if size > 1 and size % self.stages:
            raise ValueError(f"{self.stages} stages do not divide the world of {size} ranks; start a multiple of "
                             f"{self.stages}, such as pipeloom-run -n {self.stages}")
        library.set("stages", self.stages)
        library.set("schedule", "interleaved" if self.interleave else _SCHEDULES[self.scheduler])
        library.set("output_broadcast", int(self.output_broadcast))
        if size > self.stages:  # what concerns data ranks
            library.set("dataset_strategy", self.dataset_strategy)
            library.set("gradients_mean", int(self.gradients_mean))


def checked_dataset_strategy(strategy):
    """A name; NotImplementedError for a real sharding."""
    if isinstance(strategy, str):
        return strategy
    require_no_sharding("dataset_strategy", strategy)
    return "full_batch"


def require_no_sharding(what, strategy):
    """NotImplementedError unless every number in it is 1."""
    pending = [strategy]
    while pending:
        value = pending.pop()
        if isinstance(value, (tuple, list)):
            pending += value
        elif value is not None and (not isinstance(value, int) or value != 1):
            raise NotImplementedError(f"{what}={strategy} (tensor parallelism) is not there yet with pipeloom; give "
                                      "ones or leave it out")
