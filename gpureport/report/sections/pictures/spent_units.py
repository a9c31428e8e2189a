"""The unit of bars of GPU time: seconds, minutes or hours, per so much work that figures have few digits."""

from dataclasses import dataclass

from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import PER_WORK
from gpureport.report.wording.terms import PER_RUN, name_figure
from gpureport.report.wording.work_scale import name_work

_MOST = 10_000.0
_TIMES = (("s", 1.0), ("min", 60.0), ("h", 3600.0))
_BATCHES = ((1.0, "1,000"), (1e3, "million"), (1e6, "billion"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentUnit:
    """The unit of bars.

    Attributes:
        size: one of it in GPU-seconds, or in GPU-seconds per 1,000 units of work.
        short: its name at the axis.
        name: the figure: `GPU time per 1,000 images`.
        per: what it is for: `per 1,000 images`.
        is_per_work: whether it is per unit of work rather than per run.
    """

    size: float
    short: str
    name: str
    per: str
    is_per_work: bool

    @property
    def unit(self) -> str:
        """The unit of the figure: `GPU-s`."""
        return f"GPU-{self.short}"

    @property
    def heading(self) -> str:
        """The unit of the figure, for a column below a caption that names it: `GPU-s per 1,000 images`."""
        return f"{self.unit} {self.per}"


def choose_unit_per_work(comparison: Comparison) -> SpentUnit:
    """Return the unit of GPU time per unit of work in which every step has at least one and few digits."""
    values = [value for step in comparison.steps if (value := step.value(PER_WORK))]
    least, most = min(values, default=1.0), max(values, default=1.0)
    factor, batch = next((entry for entry in _BATCHES if least * entry[0] >= 1), _BATCHES[-1])
    short, seconds = _choose_time(most * factor)
    per = f"per {batch} {name_work(comparison.steps[-1].work_unit)}"
    return SpentUnit(size=seconds / factor, short=short, name=name_figure(PER_WORK, per), per=per, is_per_work=True)


def choose_unit_per_run(seconds: float) -> SpentUnit:
    """Return the unit of the GPU time of runs, of which the longest took so many GPU-seconds."""
    short, size = _TIMES[-1] if seconds >= 3600 * 10 else _TIMES[1] if seconds >= 120 else _TIMES[0]  # noqa: PLR2004 - ten hours, two minutes
    return SpentUnit(size=size, short=short, name=name_figure("gpu_seconds"), per=PER_RUN, is_per_work=False)


def _choose_time(seconds: float) -> tuple[str, float]:
    return next((entry for entry in _TIMES if seconds / entry[1] < _MOST), _TIMES[-1])
