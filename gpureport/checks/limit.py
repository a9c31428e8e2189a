"""One limit, parsed from a line such as `gpu_utilization_ratio p5 >= 80%` or `change idle_ratio <= 2 points`.

What may be limited: statistics of metrics, figures of a run, GPU time, findings, training metrics, and changes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from math import isfinite

from gpureport.analysis import RULES, results
from gpureport.analysis.account.selection import kinds_by_name
from gpureport.checks.limit_units import (
    COUNT,
    FINDINGS,
    MONEY,
    NUMBER,
    POINTS,
    SHARE,
    TIME,
    Quantity,
    describe_unit,
    parse_quantity,
)
from gpureport.comparison.figures import BY_METRIC, SECONDS_TO_TARGET, TRAINING_RATE
from gpureport.findings import Severity
from gpureport.metrics import BY_NAME, METRICS, MetricKind
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
_NEAR = 0.85  # likeness to a known name from which an unknown one is taken for a slip


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
    """What a name in a limit stands for, and the units of its threshold, the usual one first."""

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
    """Return what a training metric of this name stands for, if it can be one.

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
    """Return what the change of a figure stands for, if steps are compared by it."""
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


_LIMIT = re.compile(
    r"(?:(?P<no>no)\s+)?(?:(?P<of>change|new)\s+)?(?P<name>\w+)(?:[.\s]\s*(?P<statistic>\w+))?\s*(?:(?P<relation><=|>=|<|>)(?P<threshold>.*))?"
)
_TRAINING = re.compile(
    r"(?:(?P<of>change)\s+)?(?:(?P<named>training)\s+)?(?:\"(?P<quoted>[^\"]+)\"|(?P<plain>[^\s<>=\"]+))(?:\s+(?P<statistic>final|best))?"
    r"\s*(?P<relation><=|>=|<|>)(?P<threshold>.*)"
)
_EXAMPLE = "write one such as 'idle_ratio <= 5%' or 'no thermal_throttle'"
_SCALED = {"W", "By", "By/s", "Hz", "J", "Cel", "s"}


class LimitError(ValueError):
    """A text states no limit: what is wrong, what to write instead, and the code of the mistake."""

    def __init__(self, what: str, hint: str, *, code: str) -> None:
        super().__init__(what)
        self.what, self.hint, self.code = what, hint, code


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on one figure, or on findings.

    Attributes:
        subject: what kind of thing is limited.
        name: its name.
        statistic: of a metric or a training metric; empty for other things.
        relation: `<=`, `<`, `>=` or `>`.
        threshold: what a value is compared with.
        words: the limit as it can be written again.
    """

    subject: TargetKind
    name: str
    statistic: str
    relation: str
    threshold: Quantity
    words: str

    @property
    def is_upper(self) -> bool:
        """Whether it is an upper limit."""
        return self.relation.startswith("<")

    def holds(self, value: float) -> bool:
        """Return whether a value is within it, up to rounding errors."""
        limit = self.threshold.value
        near = isfinite(value) and abs(value - limit) <= 1e-9 * max(abs(value), abs(limit))
        if near:
            return self.relation.endswith("=")
        return value < limit if self.is_upper else value > limit


def parse_limit(text: str) -> Limit:
    """Return the limit a text states.

    Raises:
        LimitError: when it states none.
    """
    text = " ".join(text.split())
    training = _parse_training_limit(text)
    if training is not None:
        return training
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise LimitError(f"{text!r} is no limit", _EXAMPLE, code="not_a_limit")
    of, name, statistic, relation = (match[part] or "" for part in ("of", "name", "statistic", "relation"))
    found = _resolve_target(of, name)
    statistic = _resolve_statistic(name, statistic, found)
    if match["no"] and relation:
        raise LimitError(f"{text!r} says no and how many", "write one of the two", code="not_a_limit")
    if relation:
        threshold = _parse_threshold(match["threshold"], name, found)
        _refuse_idle_limit(name, found, relation, threshold)
    else:
        threshold = _no_findings(name, found)
    amount = f"{relation} {threshold.text}" if relation else ""
    words = " ".join(filter(None, ("" if relation else "no", of, name, statistic, amount)))
    return Limit(found.subject, name, statistic, relation or "<=", threshold, words)


def _parse_training_limit(text: str) -> Limit | None:
    """Return the limit on a training metric that a text states, if any."""
    match = _TRAINING.fullmatch(text)
    if match is None:
        return None
    name, of, named = match["quoted"] or match["plain"], match["of"] or "", match["named"] or ""
    found = None
    if named or (find_target(name) is None and not match["quoted"]):
        found = find_training_target(name, change=bool(of), named=bool(named))
    if found is None:
        return None
    threshold = _parse_threshold(match["threshold"], name, found)
    _refuse_idle_limit(name, found, match["relation"], threshold)
    statistic = match["statistic"] or FINAL
    written = f'"{name}"' if match["quoted"] else name
    words = " ".join(filter(None, (of, named, written, statistic, match["relation"], threshold.text)))
    return Limit(found.subject, name, statistic, match["relation"], threshold, words)


def _resolve_target(of: str, name: str) -> LimitTarget:
    found = find_change_target(name) if of == "change" else find_target(name)
    if found is None:
        what = f"no figure {name!r} whose change is known" if of == "change" else f"nothing is called {name!r}"
        raise LimitError(what, suggest_name(name, change=of == "change"), code="unknown_limit_name")
    if of == "new":
        if found.subject is not TargetKind.FINDING:
            hint = "write new before a kind or a severity"
            raise LimitError(f"{name} is no kind of finding", hint, code="unknown_kind")
        return LimitTarget(subject=TargetKind.NEW, units=(FINDINGS,))
    return found


def _resolve_statistic(name: str, written: str, found: LimitTarget) -> str:
    if found.subject is not TargetKind.STATISTIC:
        if written:
            hint = "leave the second word out"
            raise LimitError(f"{name} has no statistic {written!r}", hint, code="unknown_statistic")
        return ""
    known = (*STATISTICS, *(BELOW if name == "gpu_utilization_ratio" else ()))
    if written and written not in known:
        hint = f"known are {', '.join(known)}"
        raise LimitError(f"{name} has no statistic {written!r}", hint, code="unknown_statistic")
    return written or "mean"


def _no_findings(name: str, found: LimitTarget) -> Quantity:
    """Return the threshold of a limit without one: no finding at all."""
    if found.subject not in {TargetKind.FINDING, TargetKind.NEW}:
        hint = f"write {name} <= and {describe_unit(found.units[0])}"
        raise LimitError(f"{name} without an amount", hint, code="no_amount")
    return Quantity(value=0.0, unit=FINDINGS)


def _parse_threshold(text: str, name: str, found: LimitTarget) -> Quantity:
    threshold = parse_quantity(text)
    if threshold is None:
        hint = f"write {describe_unit(found.units[0])}"
        raise LimitError(f"{text.strip()!r} is no amount", hint, code="not_an_amount")
    plain = next((unit for unit in (FINDINGS, NUMBER) if unit in found.units), None)
    if threshold.unit == COUNT and plain is not None:
        threshold = Quantity(value=threshold.value, unit=plain, text=threshold.text)
    if threshold.unit == COUNT and not {*found.units} & {SHARE, *_SCALED}:
        threshold = Quantity(value=threshold.value, unit=found.units[-1], text=threshold.text)
    if threshold.unit not in found.units:
        allowed = " or ".join(describe_unit(unit) for unit in found.units)
        raise LimitError(f"{name} is not limited by {text.strip()!r}", f"write {allowed}", code="wrong_unit")
    if found.subject is TargetKind.CHANGE and threshold.value == 0:
        hint = "state the size from which it matters"
        raise LimitError(f"a change of {name} of 0 is within any noise", hint, code="no_amount")
    return threshold


def _refuse_idle_limit(name: str, found: LimitTarget, relation: str, threshold: Quantity) -> None:
    """Refuse a limit that every run keeps, most often a change written as a level."""
    metric = recognise_metric(name) if found.subject is TargetKind.TRAINING else None
    value, share = threshold.value, threshold.unit == SHARE
    is_rate = metric is not None and metric.role not in QUALITY_ROLES
    idle = share and (value < 0 or is_rate)  # a reward may be below zero, a rate is no share
    if found.subject is not TargetKind.TRAINING and relation.startswith(">"):
        idle = threshold.unit != "Cel" and (value < 0 or (value == 0 and relation == ">="))
    elif found.subject is not TargetKind.TRAINING:
        idle = (
            share
            and (value > 1 or (value == 1 and relation == "<="))
            and not (name in BY_NAME and BY_NAME[name].may_exceed_one)
        )
    if idle and found.subject is not TargetKind.CHANGE:
        figure = TRAINING_RATE if is_rate else f"training {name}" if metric else name
        change = f"'change {figure} {relation} {threshold.text}' limits a change against the baseline"
        hint = change if value < 0 or is_rate else "write an amount that a run can miss"
        raise LimitError(f"{name} {relation} {threshold.text} cannot fail", hint, code="cannot_fail")
