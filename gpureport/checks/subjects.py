"""What a limit may be on: statistics of metrics, figures of a run, GPU time, findings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from gpureport.analysis import RULES, results
from gpureport.analysis.engine.selection import kinds_by_name
from gpureport.checks.amounts import COUNT, FINDINGS, MONEY, SHARE, TIME
from gpureport.comparison.steps.compared_figures import BY_METRIC
from gpureport.findings import Severity
from gpureport.metrics import METRICS, MetricKind

STATISTICS = ("mean", "sample_mean", "p5", "p50", "p95", "min", "max")
"""Statistics of a metric; without one a limit is on the mean."""

BELOW = {"below_25": 0.25, "below_50": 0.5, "below_70": 0.7}
"""Shares of time below a utilisation, as statistics of it."""

LOST = "lost"
"""GPU time of all classes that are lost."""

_FAMILIES = kinds_by_name(RULES)
_PER_GPU = {
    "idle_seconds": (TIME,),
    "gpu_memory_peak_bytes": ("By",),
    "gpu_memory_headroom_ratio": (SHARE,),
    "observed_seconds": (TIME,),
}
_OF_RUN = {
    "cost": (MONEY,),
    "idle_cost": (MONEY,),
    "carbon": ("g",),
    "duration": (TIME,),
    "coverage": (SHARE,),
    "rejected": (COUNT,),
    "not_judged": (COUNT,),
}


class Subject(StrEnum):
    """What kind of thing a limit is on."""

    STATISTIC = "statistic"
    DEVICE = "figure of each GPU"
    FIGURE = "figure of all GPUs"
    RUN = "figure of the run"
    GPU_TIME = "GPU time"
    FINDING = "findings"
    CHANGE = "change"
    NEW = "new findings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A name a limit may use: what it is on, and the units its amount may have, the usual one first."""

    subject: Subject
    units: tuple[str, ...]


def _names() -> Iterator[tuple[str, Known]]:
    """Yield every name a limit may use, those of more detail last."""
    for figure in BY_METRIC.values():
        yield figure.metric, Known(subject=Subject.FIGURE, units=(figure.unit,))
    for name, units in _PER_GPU.items():
        yield name, Known(subject=Subject.DEVICE, units=units)
    for name, units in _OF_RUN.items():
        yield name, Known(subject=Subject.RUN, units=units)
    for name in (*results.GPU_TIME_CLASSES, LOST):
        yield name, Known(subject=Subject.GPU_TIME, units=(SHARE, TIME))
    for name in (*_FAMILIES, *Severity):
        yield name, Known(subject=Subject.FINDING, units=(FINDINGS, SHARE, TIME, MONEY))
    for metric in METRICS:
        if metric.kind is not MetricKind.COUNTER:
            # of a state, the share of time it was on
            unit = SHARE if metric.kind is MetricKind.STATE else metric.unit
            yield metric.name, Known(subject=Subject.STATISTIC, units=(unit,))


_NAMES = dict(_names())


def known(word: str) -> Known | None:
    """Return what a name stands for, None when for nothing."""
    return _NAMES.get(word)


def changing(word: str) -> Known | None:
    """Return what a name stands for whose change is limited, None where steps are not compared by it."""
    figure = BY_METRIC.get(word)
    if figure is None:
        return None
    return Known(subject=Subject.CHANGE, units=("points",) if figure.unit == SHARE else (SHARE, figure.unit))


def kinds(word: str) -> frozenset[str]:
    """Return the kinds a kind, a family or a severity stands for: all of them for a severity."""
    return frozenset(_FAMILIES[word]) if word in _FAMILIES else frozenset(k for rule in RULES for k in rule.kinds)


def severities(word: str) -> Sequence[Severity]:
    """Return the severities meant: those from the one named on, all for a kind."""
    every = list(Severity)
    return every[every.index(Severity(word)) :] if word in tuple(Severity) else every


def close(word: str, *, change: bool = False) -> str:
    """Return what was perhaps meant by a name that is none, as a hint."""
    found = get_close_matches(word, BY_METRIC if change else _NAMES, n=1)
    if found:
        return f"did you mean {found[0]!r}?"
    if change:
        return f"changes are known of {', '.join(BY_METRIC)}"
    return "name a metric, a kind of finding, a severity, a class of GPU time, or a figure (see docs/how-to/gates.md)"
