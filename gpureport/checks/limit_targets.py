"""What may be limited: statistics of metrics, figures of a run, GPU time, findings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from gpureport.analysis import RULES, results
from gpureport.analysis.account.selection import kinds_by_name
from gpureport.checks.limit_units import COUNT, FINDINGS, MONEY, NUMBER, POINTS, SHARE, TIME
from gpureport.comparison.figures import BY_METRIC, SECONDS_TO_TARGET, TRAINING_RATE
from gpureport.findings import Severity
from gpureport.metrics import METRICS, MetricKind
from gpureport.training_names import QUALITY_ROLES, recognise_metric

STATISTICS = ("mean", "sample_mean", "p5", "p50", "p95", "min", "max")
"""Statistics of a metric; the mean if none is named."""

BELOW = {"below_25": 0.25, "below_50": 0.5, "below_70": 0.7}
"""Statistics of a utilisation: shares of time below it."""

FINAL, BEST = "final", "best"
"""Statistics of a training metric; the final value if none is named."""

LOST = "lost"
"""GPU time of all classes that are lost."""

_FAMILIES = kinds_by_name(RULES)
_PER_GPU = {
    "idle_seconds": (TIME,),
    "gpu_memory_peak_bytes": ("By",),
    "gpu_memory_headroom_ratio": (SHARE,),
    "observed_seconds": (TIME,),
}
_PER_RUN = {
    "cost": (MONEY,),
    "idle_cost": (MONEY,),
    "carbon": ("g",),
    "duration": (TIME,),
    "coverage": (SHARE,),
    "rejected": (COUNT,),
    "not_judged": (COUNT,),
}
_TO_TARGET = {SECONDS_TO_TARGET: (TIME,), "gpu_seconds_to_target": (TIME,), "cost_to_target": (MONEY,)}
"""What a run spent until a training metric reached the target of `--target`."""
_NEAR = 0.85
"""Likeness to a known name from which an unknown one is taken for a slip."""


class TargetKind(StrEnum):
    """What kind of thing is limited."""

    STATISTIC = "statistic"
    DEVICE = "figure of each GPU"
    FIGURE = "figure of all GPUs"
    RUN = "figure of the run"
    TRAINING = "training metric"
    TRAINING_RATE = "rate of training alone"
    TO_TARGET = "time to a target"
    GPU_TIME = "GPU time"
    FINDING = "findings"
    CHANGE = "change"
    NEW = "new findings"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitTarget:
    """What a name in a limit stands for, and the units its threshold may have, the usual one first."""

    subject: TargetKind
    units: tuple[str, ...]


def _list_targets() -> Iterator[tuple[str, LimitTarget]]:
    """Yield every name a limit may use, those of more detail last."""
    for figure in BY_METRIC.values():
        subject = TargetKind.TRAINING_RATE if figure.metric == TRAINING_RATE else TargetKind.FIGURE
        yield figure.metric, LimitTarget(subject=subject, units=(figure.unit,))
    for name, units in _PER_GPU.items():
        yield name, LimitTarget(subject=TargetKind.DEVICE, units=units)
    for name, units in _PER_RUN.items():
        yield name, LimitTarget(subject=TargetKind.RUN, units=units)
    for name, units in _TO_TARGET.items():
        yield name, LimitTarget(subject=TargetKind.TO_TARGET, units=units)
    for name in (*results.GPU_TIME_CLASSES, LOST):
        yield name, LimitTarget(subject=TargetKind.GPU_TIME, units=(SHARE, TIME))
    for name in (*_FAMILIES, *Severity):
        yield name, LimitTarget(subject=TargetKind.FINDING, units=(FINDINGS, SHARE, TIME, MONEY))
    for metric in METRICS:
        if metric.kind is not MetricKind.COUNTER:
            # of a state, the share of time it was on
            unit = SHARE if metric.kind is MetricKind.STATE else metric.unit
            yield metric.name, LimitTarget(subject=TargetKind.STATISTIC, units=(unit,))


TARGETS = dict(_list_targets())
"""Every name that a limit may use without a word before it."""


def find_target(word: str) -> LimitTarget | None:
    """Return what a name stands for; None if it is unknown."""
    return TARGETS.get(word)


def find_training_target(name: str, *, change: bool, named: bool) -> LimitTarget | None:
    """Return what a training metric of this name stands for; None if it cannot be told to be one.

    Args:
        name: of the metric.
        change: whether its change is limited.
        named: whether the limit says that it is a training metric.
    """
    metric = recognise_metric(name)
    recognised = metric is not None and metric.role in QUALITY_ROLES and not get_close_matches(name, TARGETS, 1, _NEAR)
    if not (named or recognised):
        return None
    units = (NUMBER, SHARE, POINTS) if change else (NUMBER, SHARE)
    return LimitTarget(subject=TargetKind.CHANGE if change else TargetKind.TRAINING, units=units)


def find_change_target(word: str) -> LimitTarget | None:
    """Return what the change of a figure stands for; None if steps are not compared by that figure."""
    figure = BY_METRIC.get(word)
    if figure is None:
        return None
    return LimitTarget(subject=TargetKind.CHANGE, units=("points",) if figure.unit == SHARE else (SHARE, figure.unit))


def finding_kinds(word: str) -> frozenset[str]:
    """Return the kinds of a kind, a family or a severity; every kind for a severity."""
    return frozenset(_FAMILIES[word]) if word in _FAMILIES else frozenset(k for rule in RULES for k in rule.kinds)


def finding_severities(word: str) -> Sequence[Severity]:
    """Return the severities that count: from the named one upwards; all for a kind."""
    every = list(Severity)
    return every[every.index(Severity(word)) :] if word in tuple(Severity) else every


def suggest_name(word: str, *, change: bool = False) -> str:
    """Return a hint for an unknown name: the closest known one, or what can be named."""
    found = get_close_matches(word, BY_METRIC if change else TARGETS, n=1)
    if found:
        return f"did you mean {found[0]!r}?"
    if change:
        return f"changes are known of {', '.join(BY_METRIC)}"
    return (
        "name a metric, a kind of finding, a severity, a class of GPU time, a figure, or a training metric as "
        "'training NAME' (see docs/how-to/gates.md)"
    )
