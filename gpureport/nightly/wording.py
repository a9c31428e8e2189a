"""Figures of nights and their changes in words."""

import re
from collections.abc import Sequence
from datetime import date
from hashlib import sha256

from gpureport.comparison.figures import PER_WORK
from gpureport.nightly.figures import COUNT, FigureKind
from gpureport.nightly.shifts import LevelShift
from gpureport.nightly.trends import ChangeEvent, ParamChange, Point, Trend
from gpureport.report.wording import display
from gpureport.report.wording.differences import format_percent_change, format_percent_range
from gpureport.report.wording.display import drop_equal_ends, format_interval
from gpureport.report.wording.terms import name_for_one

_LABEL = 60
_GONE = 0.005
"""Share of GPU time that prints as less than one per cent."""

_CAUSES = frozenset({"waiting_ratio", "throttled_ratio", "startup_ratio", "idle_ratio"})
"""Figures that say what lies behind a change of the job's own figure."""


def format_value(kind: FigureKind, amount: float | None) -> str:
    """Return a value of a figure in words; None is not recorded."""
    if amount is None:
        return display.NOT_RECORDED
    if kind.unit == COUNT:
        return display.integer(amount) if amount == round(amount) else display.number(amount)
    if kind.unit == "currency":
        return display.money(amount)
    if kind.unit == "1/s":
        return f"{display.number(amount)}{display.GAP}/s"
    return display.gpu_time(amount) if kind.name.startswith("gpu_seconds") else display.quantity(amount, kind.unit)


def describe_absence(kind: FigureKind, point: Point) -> str:
    """Return why a night has no value of a figure."""
    if not point.runs:
        return "no data"
    # without a stated unit it is the work that is missing, not a price
    is_unstated = kind.is_of_work and all(run.value(PER_WORK) is None for run in point.runs)
    return "no work stated" if is_unstated else display.NOT_RECORDED


def format_change_interval(kind: FigureKind, step: LevelShift) -> str:
    """Return the 95% interval of a change: in points for shares, absolute for counts, else in per cent.

    It is empty where both ends read alike.
    """
    if kind.unit not in (COUNT, "1") and step.before > 0:
        return drop_equal_ends(format_percent_range((1 + step.low / step.before, 1 + step.high / step.before)))
    scale, unit = (100.0, f"{display.GAP}points") if kind.unit == "1" else (1.0, "")
    return format_interval((step.low, step.high), lambda end: display.signed(scale * end), unit)


def format_change(kind: FigureKind, step: LevelShift) -> str:
    """Return how a figure changed, behind its name: `−50%`, `20% → 9%`, `gone`."""
    if kind.unit == "1" and step.after < _GONE <= step.before:
        return "gone"
    if kind.unit in ("1", COUNT) or step.before <= 0:
        return f"{format_value(kind, step.before)} → {format_value(kind, step.after)}"
    return format_percent_change(step.after / step.before)


def format_param_changes(entries: Sequence[ParamChange]) -> str:
    """Return which params changed, as `batch_size 32 → 64`."""
    told = [
        [display.NOT_RECORDED if value is None else format_label(value) for value in (each.before, each.after)]
        for each in entries
    ]
    return "; ".join(f"{display.clean(each.key)} {' → '.join(pair)}" for each, pair in zip(entries, told, strict=True))


def format_label(text: str) -> str:
    """Return a label from outside, cleaned and of bounded length."""
    return display.shorten_middle(display.clean(text), _LABEL)


def format_group(step: str, model: str) -> str:
    """Return the name of a group of runs: their step and GPUs."""
    gpus = format_label(model) or "GPUs whose model was not recorded"
    return f"{format_label(step)} · {gpus}" if step else gpus


def name_figure_page(trend: Trend) -> str:
    """Return the name of the page of a figure, without its ending."""
    plain = re.sub(r"[^a-z0-9]+", "-", " ".join(trend.group).lower()).strip("-")[:40]
    digest = sha256("\n".join(trend.group).encode()).hexdigest()[:6]
    return f"{plain or 'gpus'}-{digest}-{trend.kind.name}"


def describe_event(event: ChangeEvent) -> str:
    """Return an event as a sentence: the job's own figure, then its largest part of GPU time."""
    (trend, change), *others = event.changes
    # a change in per cent is the same for one unit of work as for a thousand
    title = name_for_one(trend.kind.title)
    words = f"{title} {'drifts ' if change.shift.gradual else ''}{format_change(trend.kind, change.shift)}"
    behind = [(other.kind, found.shift) for other, found in others if other.kind.name in _CAUSES]
    if not behind:
        return f"{words}."
    kind, shift = max(behind, key=lambda entry: abs(entry[1].difference))
    return f"{words}, {display.lower_first(kind.title)} {format_change(kind, shift)}."


def describe_standing_event(event: ChangeEvent) -> str:
    """Return that a change for the worse still holds: how large it is today, and since when."""
    kind = event.changes[0][0].kind
    return (
        f"{name_for_one(kind.title)} still {format_change(kind, event.present_shift)} since {format_day(event.date)}."
    )


def format_day(night: str) -> str:
    """Return a night as people write it, without the year: `7 Oct`."""
    day = date.fromisoformat(night)
    return f"{day.day} {day:%b}"


def name_night(night: ChangeEvent | Point) -> str:
    """Return a night with its other name, such as a commit, if it has one."""
    return f"{format_day(night.date)}{f' ({format_label(night.label)})' if night.label else ''}"
