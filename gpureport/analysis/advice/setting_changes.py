"""How a change of the set-up between two runs shows that a step of the catalogue was taken."""

from dataclasses import dataclass

_DERIVED = 1.05
"""Ratio up to which totals and limits differ that trackers leave to be derived from an amount and its share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """A change of one setting that means a step was taken.

    Attributes:
        setting: a number of `JobParams`, or `gpu_count`, `gpu_memory` or `power_limit` of the recording.
        rises: whether the step raises it, or turns it on; otherwise it lowers it.
        unset: its value where the params of a run do not name it; None where that is not known.
        noise: ratio up to which two recordings of one value differ.
    """

    setting: str
    rises: bool = True
    unset: float | None = None
    noise: float = 1.0

    def is_made(self, before: float | None, after: float | None) -> bool:
        """Return whether the setting moved in the direction of the step; None is a setting that was not recorded."""
        first, last = self._known(before), self._known(after)
        if first is None or last is None:
            return False
        return last > self.noise * first if self.rises else self.noise * last < first

    def may_be_made(self, before: float | None, after: float | None) -> bool:
        """Return whether the setting is known on one side alone, so that its direction is not known."""
        return (self._known(before) is None) != (self._known(after) is None)

    def _known(self, value: float | None) -> float | None:
        return self.unset if value is None else value


def _turned_on(setting: str) -> SettingChange:
    return SettingChange(setting=setting, unset=0.0)


MORE_WORKERS = SettingChange(setting="workers")
FEWER_WORKERS = SettingChange(setting="workers", rises=False)
LARGER_PREFETCH_FACTOR = SettingChange(setting="prefetch_factor", unset=2.0)
"""PyTorch loads two batches a worker ahead of itself."""
PREFETCH_ON = _turned_on("prefetch")
PINNED_MEMORY_ON = _turned_on("pin_memory")
NON_BLOCKING_ON = _turned_on("non_blocking")
PERSISTENT_WORKERS_ON = _turned_on("persistent_workers")
COMPILED_ON = _turned_on("compiled")
CUDA_GRAPHS_ON = _turned_on("cuda_graphs")
CUDNN_AUTOTUNING_ON = _turned_on("cudnn_benchmark")
PRETRAINED_WEIGHTS_ON = _turned_on("pretrained")
ASYNCHRONOUS_CHECKPOINTS_ON = _turned_on("asynchronous_checkpoints")
REDUCED_PRECISION_ON = _turned_on("precision")
LARGER_BATCH = SettingChange(setting="batch")
MORE_ACCUMULATION = SettingChange(setting="accumulation", unset=1.0)
FEWER_GPUS = SettingChange(setting="gpu_count", rises=False)
MORE_GPU_MEMORY = SettingChange(setting="gpu_memory", noise=_DERIVED)
LESS_GPU_MEMORY = SettingChange(setting="gpu_memory", rises=False, noise=_DERIVED)
HIGHER_POWER_LIMIT = SettingChange(setting="power_limit", noise=_DERIVED)
LOWER_POWER_LIMIT = SettingChange(setting="power_limit", rises=False, noise=_DERIVED)
