"""set_auto_parallel_context and the like, in place of MindSpore's."""

import dataclasses

import mindspore.context as stock
from mindspore import log

from pipeloom.settings import Settings, checked_dataset_strategy

_stock_set = stock.set_auto_parallel_context
_stock_get = stock.get_auto_parallel_context
_stock_reset = stock.reset_auto_parallel_context
_stock_set_context = stock.set_context

# Say how other devices or strategies are to be used; nothing here depends on them.
_WITHOUT_MEANING = {
    "device_num", "global_rank", "all_reduce_fusion_config", "comm_fusion", "gradient_fp32_sync", "loss_repeated_mean",
    "communi_parallel_mode", "enable_alltoall", "force_fp32_communication", "auto_parallel_search_mode", "search_mode",
    "parameter_broadcast"
}
_MODES = ("stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel", "auto_parallel")


class Context:
    """The options of graphs that no AutoParallel runs."""

    def __init__(self):
        self.version = 0
        self.reset()

    def reset(self):
        """To the defaults."""
        self.version += 1
        self.settings = Settings()
        self.values = {}

    def set(self, **options):
        """Takes what concerns pipelines; NotImplementedError for what is not there yet, ValueError for bad values."""
        settings = dataclasses.replace(self.settings)
        for key, value in options.items():
            self._take(settings, key, value)
        settings.check()
        self.settings = settings
        self.values.update(options)
        self.version += 1

    @staticmethod
    def _take(settings, key, value):
        if key == "pipeline_stages":
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"pipeline_stages={value}: give 1 or more")
            settings.stages = value
        elif key == "pipeline_result_broadcast":
            settings.output_broadcast = bool(value)
        elif key == "pipeline_config":
            settings.interleave = bool(value.get("pipeline_interleave", False))
            settings.scheduler = value.get("pipeline_scheduler", "1f1b")
        elif key == "full_batch":
            settings.dataset_strategy = "full_batch" if value else "data_parallel"
        elif key == "dataset_strategy":
            settings.dataset_strategy = checked_dataset_strategy(value)
        elif key == "gradients_mean":
            settings.gradients_mean = bool(value)
        elif key == "parallel_mode":
            if value not in _MODES:
                raise ValueError(f"parallel_mode={value}: choose from {', '.join(_MODES)}")
        elif key not in _WITHOUT_MEANING and value not in (None, False, "", {}):
            raise NotImplementedError(f"set_auto_parallel_context({key}={value}) is not there yet with pipeloom")


context = Context()


def set_auto_parallel_context(**kwargs):
    """Keeps the options here: MindSpore's own context would refuse a CPU."""
    context.set(**kwargs)


def get_auto_parallel_context(attr_key):
    """What set_auto_parallel_context was given, or MindSpore's default."""
    default = _stock_get(attr_key)
    return context.values.get(attr_key, default)


def reset_auto_parallel_context():
    """Back to the defaults."""
    context.reset()
    _stock_reset()


_warned = set()


def _on_cpu(target):
    """What to ask MindSpore for in place of `target`."""
    if target not in ("Ascend", "GPU", "Davinci"):
        return target
    if not _warned:
        log.warning(f"the device target {target} is not there; pipeloom runs on the CPU")
        _warned.add(target)
    return "CPU"


def set_context(**kwargs):
    """MindSpore's, with one warning for a device that is not there."""
    if "device_target" in kwargs:
        kwargs["device_target"] = _on_cpu(kwargs["device_target"])
    _stock_set_context(**kwargs)


def set_device(device_target, device_id=None):
    """MindSpore's, with one warning for a device that is not there."""
    from mindspore.device_manager import set_device as stock_set_device
    target = _on_cpu(device_target)
    stock_set_device(target, device_id if target == device_target else None)
