"""Limits as people write them, such as `gpu_utilization_ratio p5 >= 80%` or `change idle_ratio <= 2 points`.

In one sentence: `no`, `change` or `new`, then a name (of a training metric with `training` before it, in quotes where
it has spaces), a statistic, a relation and an amount; only the name is always needed.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches

from gpureport.analysis import results
from gpureport.checks import figures, finding_counts
from gpureport.checks.figures import BELOW, LOST
from gpureport.checks.limit import BEST, FINAL, Figure, Limit, Subject
from gpureport.checks.quantities import (
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
from gpureport.names import QUALITY_ROLES, recognise_metric

_LIMIT = re.compile(
    r"(?:(?P<no>no)\s+)?(?:(?P<of>change|new)\s+)?(?:(?P<training>training)\s+)?"
    r"(?:\"(?P<quoted>[^\"]+)\"|(?P<plain>[^\s<>=\"]+))(?:\s+(?P<statistic>\w+))?"
    r"\s*(?:(?P<relation><=|>=|<|>)(?P<amount>.*))?"
)
STATISTICS = ("mean", "sample_mean", "p5", "p50", "p95", "min", "max")
"""Statistics of a metric; the mean if none is named."""

_NEAR = 0.85
"""Likeness to a known name from which an unknown one is taken for a slip."""

_PER_GPU = {
    "idle_seconds": TIME,
    "gpu_memory_peak_bytes": "By",
    "gpu_memory_headroom_ratio": SHARE,
    "observed_seconds": TIME,
}
_PER_RUN = {
    "cost": (MONEY, figures.observe_cost),
    "idle_cost": (MONEY, figures.observe_cost),
    "carbon": ("g", figures.observe_carbon),
    "duration": (TIME, figures.observe_run),
    "coverage": (SHARE, figures.observe_run),
    "rejected": (COUNT, figures.observe_run),
    "not_judged": (COUNT, figures.observe_run),
}
_TO_TARGET = {SECONDS_TO_TARGET: TIME, "gpu_seconds_to_target": TIME, "cost_to_target": MONEY}
_SCALED = {SHARE, TIME, "W", "By", "By/s", "Hz", "J", "Cel"}


def _list_figures() -> Iterator[tuple[str, Figure]]:
    """Yield every name that a limit may use without a word before it, those of more detail last."""
    for each in BY_METRIC.values():
        yield each.metric, Figure(Subject.FIGURE, (each.unit,), figures.observe_figure)
    yield TRAINING_RATE, Figure(Subject.TRAINING, ("1/s",), figures.observe_training_rate)
    for name, unit in _PER_GPU.items():
        yield name, Figure(Subject.FIGURE, (unit,), figures.observe_device_figure)
    for name, (unit, observe) in _PER_RUN.items():
        yield name, Figure(Subject.RUN, (unit,), observe)
    for name, unit in _TO_TARGET.items():
        yield name, Figure(Subject.TRAINING, (unit,), figures.observe_time_to_target)
    for name in (*results.GPU_TIME_CLASSES, LOST):
        yield name, Figure(Subject.FIGURE, (SHARE, TIME), figures.observe_gpu_time)
    for name in (*finding_counts.FAMILIES, *Severity):
        yield name, Figure(Subject.FINDING, (FINDINGS, SHARE, TIME, MONEY), finding_counts.observe_findings)
    for metric in METRICS:
        if metric.kind is not MetricKind.COUNTER:
            # of a state, the share of time it was on
            unit = SHARE if metric.kind is MetricKind.STATE else metric.unit
            yield metric.name, Figure(Subject.STATISTIC, (unit,), figures.observe_statistic)


FIGURES = dict(_list_figures())
"""Every name that a limit may use without a word before it, and what it stands for."""


class LimitError(ValueError):
    """A text states no limit: what is wrong, what to write instead, and the code of the mistake."""

    def __init__(self, what: str, hint: str, *, code: str) -> None:
        super().__init__(what)
        self.what, self.hint, self.code = what, hint, code


def parse_limit(text: str) -> Limit:
    """Return the limit a text states; a LimitError says that it states none."""
    text = " ".join(text.split())
    match = _LIMIT.fullmatch(text)
    if match is None or (match["quoted"] and not match["training"]):
        hint = "write one such as 'idle_ratio <= 5%' or 'no thermal_throttle'"
        raise LimitError(f"{text!r} is no limit", hint, code="not_a_limit")
    of, name, statistic, relation = (match[part] or "" for part in ("of", "plain", "statistic", "relation"))
    name = name or match["quoted"]
    if match["no"] and relation:
        raise LimitError(f"{text!r} says no and how many", "write one of the two", code="not_a_limit")
    if not (match["training"] or statistic or name in FIGURES) and name.rpartition(".")[0] in FIGURES:
        name, _, statistic = name.rpartition(".")
    found = _find_figure(of, name, is_named=bool(match["training"]), is_bounded=bool(relation))
    statistic = _find_statistic(name, statistic, found)
    threshold = _read_amount(match["amount"] or "", name, found) if relation else _allow_none(name, found)
    if relation:
        _refuse_idle_limit(name, found, relation, threshold)
    written = f'"{name}"' if match["quoted"] else name
    amount = f"{relation} {threshold.text}" if relation else ""
    words = ("" if relation else "no", of, match["training"], written, statistic, amount)
    return Limit(found, name, statistic, relation or "<=", threshold, " ".join(filter(None, words)))


def _find_figure(of: str, name: str, *, is_named: bool, is_bounded: bool) -> Figure:
    """Return what a name stands for, after `change` or `new` where they are written."""
    is_change = of == "change"
    if is_bounded and of != "new" and (is_named or (name not in FIGURES and _says_quality(name))):
        if is_change:
            return Figure(Subject.CHANGE, (NUMBER, SHARE, POINTS))
        return Figure(Subject.TRAINING, (NUMBER, SHARE), figures.observe_training_metric)
    known = None if is_named else BY_METRIC.get(name) if is_change else FIGURES.get(name)
    if known is None:
        what = f"no figure {name!r} whose change is known" if is_change else f"nothing is called {name!r}"
        raise LimitError(what, _suggest_name(name, is_change=is_change), code="unknown_limit_name")
    if not isinstance(known, Figure):
        return Figure(Subject.CHANGE, (POINTS,) if known.unit == SHARE else (SHARE, known.unit))
    if of != "new":
        return known
    if known.subject is not Subject.FINDING:
        raise LimitError(f"{name} is no kind of finding", "write new before a kind or a severity", code="unknown_kind")
    return Figure(Subject.NEW, (FINDINGS,))


def _says_quality(name: str) -> bool:
    """Return whether a name says that it is a loss, an error or an accuracy, and is no slip of a known name."""
    metric = recognise_metric(name)
    return metric is not None and metric.role in QUALITY_ROLES and not get_close_matches(name, FIGURES, 1, _NEAR)


def _suggest_name(name: str, *, is_change: bool) -> str:
    found = get_close_matches(name, BY_METRIC if is_change else FIGURES, n=1)
    if found:
        return f"did you mean {found[0]!r}?"
    if is_change:
        return f"changes are known of {', '.join(BY_METRIC)}"
    return (
        "name a metric, a kind of finding, a severity, a class of GPU time, a figure, or a training metric as "
        "'training NAME' (see docs/how-to/gates.md)"
    )


def _find_statistic(name: str, written: str, found: Figure) -> str:
    """Return the statistic that is limited, the usual one where none is written; empty where there is none."""
    known: tuple[str, ...] = ()
    if NUMBER in found.units:
        known = (FINAL, BEST)
    elif found.subject is Subject.STATISTIC:
        known = (*STATISTICS, *(BELOW if name == "gpu_utilization_ratio" else ()))
    if written and written not in known:
        hint = f"known are {', '.join(known)}" if known else "leave the second word out"
        raise LimitError(f"{name} has no statistic {written!r}", hint, code="unknown_statistic")
    return written or next(iter(known), "")


def _allow_none(name: str, found: Figure) -> Quantity:
    """Return the threshold of a limit without one: no finding at all."""
    if FINDINGS not in found.units:
        hint = f"write {name} <= and {describe_unit(found.units[0])}"
        raise LimitError(f"{name} without an amount", hint, code="no_amount")
    return Quantity(value=0.0, unit=FINDINGS)


def _read_amount(text: str, name: str, found: Figure) -> Quantity:
    threshold = parse_quantity(text)
    if threshold is None:
        hint = f"write {describe_unit(found.units[0])}"
        raise LimitError(f"{text.strip()!r} is no amount", hint, code="not_an_amount")
    plain = next((unit for unit in (FINDINGS, NUMBER) if unit in found.units), None)
    if plain is None and not {*found.units} & _SCALED:
        plain = found.units[-1]
    if threshold.unit == COUNT and plain is not None:
        threshold = Quantity(value=threshold.value, unit=plain, text=threshold.text)
    if threshold.unit not in found.units:
        allowed = " or ".join(describe_unit(unit) for unit in found.units)
        raise LimitError(f"{name} is not limited by {text.strip()!r}", f"write {allowed}", code="wrong_unit")
    if found.subject is Subject.CHANGE and threshold.value == 0:
        hint = "state the size from which it matters"
        raise LimitError(f"a change of {name} of 0 is within any noise", hint, code="no_amount")
    return threshold


def _refuse_idle_limit(name: str, found: Figure, relation: str, threshold: Quantity) -> None:
    """Refuse a limit that every run keeps, most often a change written as a level."""
    if found.subject is Subject.CHANGE:
        return
    is_metric = NUMBER in found.units
    metric = recognise_metric(name) if is_metric else None
    value, is_share = threshold.value, threshold.unit == SHARE
    is_rate = metric is not None and metric.role not in QUALITY_ROLES
    if is_metric:
        # a reward may be below zero, a rate is no share
        is_idle = is_share and (value < 0 or is_rate)
    elif relation.startswith(">"):
        is_idle = threshold.unit != "Cel" and (value < 0 or (value == 0 and relation == ">="))
    else:
        may_exceed_one = name in BY_NAME and BY_NAME[name].may_exceed_one
        is_idle = is_share and (value > 1 or (value == 1 and relation == "<=")) and not may_exceed_one
    if is_idle:
        figure = TRAINING_RATE if is_rate else f"training {name}" if metric else name
        change = f"'change {figure} {relation} {threshold.text}' limits a change against the baseline"
        hint = change if value < 0 or is_rate else "write an amount that a run can miss"
        raise LimitError(f"{name} {relation} {threshold.text} cannot fail", hint, code="cannot_fail")
