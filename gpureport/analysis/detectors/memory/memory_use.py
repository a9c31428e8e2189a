"""How full the memory of a GPU was, and whether it was taken at once."""

from dataclasses import dataclass

import numpy as np

from gpureport.analysis.series.device_series import DeviceSeries

USED = "gpu_memory_used_bytes"
FEWEST_SAMPLES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Memory of one GPU: peak in use, what a job can get (installed less reserved), largest step, range after it.

    Constant is memory that stayed at its first value: a step before the log began cannot be excluded. Conclusive is a
    log that tells memory that is reserved from memory that is needed: it is long enough, or too little was in use.
    """

    device: str
    peak: int
    capacity: int
    samples: int
    step_ratio: float
    range_ratio: float
    is_constant: bool
    is_conclusive: bool
    interval: float

    @property
    def ratio(self) -> float:
        """Peak, as a share of what a job can get."""
        return self.peak / self.capacity


def is_constant(series: DeviceSeries, slack: float) -> bool:
    """Whether memory kept its first value until it was released, if it was."""
    used = series.known_values(USED)
    released = np.flatnonzero(used < used[0] / 2)
    held = used[: released[0]] if len(released) else used
    return bool(len(held) and held.max() - held.min() < slack and used.max() == held.max())
