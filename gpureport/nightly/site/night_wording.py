"""Figures of nights, their changes and the state of the latest night, in words."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from hashlib import sha256

from gpureport.checks.wording import name_failure
from gpureport.comparison.figures import PER_WORK
from gpureport.findings import CheckOutcome
from gpureport.nightly.changes.change_detection import LevelShift
from gpureport.nightly.changes.change_events import ChangeEvent
from gpureport.nightly.changes.latest_night import LatestNight
from gpureport.nightly.changes.trend import ParamChange, Point
from gpureport.nightly.history.night_figures import COUNT, FigureKind
from gpureport.report.wording import display
from gpureport.report.wording.differences import format_percent_change, format_percent_range
from gpureport.report.wording.display import drop_equal_ends, format_interval
from gpureport.report.wording.terms import name_for_one

_LABEL = 60
_GPU_TIME = ("gpu_seconds",)
_GONE = 0.005
"""Share of GPU time that prints as less than one per cent."""

_NAMED = 2
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
    if kind.name.startswith(_GPU_TIME):
        return display.gpu_time(amount)
    return display.quantity(amount, kind.unit)


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
    return "; ".join(
        f"{display.clean(each.key)} {_format_param(each.before)} → {_format_param(each.after)}" for each in entries
    )


def _format_param(text: str | None) -> str:
    return "not recorded" if text is None else display.shorten_middle(display.clean(text), _LABEL)


def format_label(text: str) -> str:
    """Return a label from outside, cleaned and of bounded length."""
    return display.shorten_middle(display.clean(text), _LABEL)


def format_group(step: str, model: str) -> str:
    """Return the name of a group of runs: their step and GPUs."""
    gpus = format_label(model) or "GPUs whose model was not recorded"
    return f"{format_label(step)} · {gpus}" if step else gpus


def figure_page_name(step: str, model: str, kind: FigureKind) -> str:
    """Return the name of the page of a figure, without its ending."""
    plain = re.sub(r"[^a-z0-9]+", "-", f"{step} {model}".lower()).strip("-")[:40]
    digest = sha256(f"{step}\n{model}".encode()).hexdigest()[:6]
    return f"{plain or 'gpus'}-{digest}-{kind.name}"


def describe_event(event: ChangeEvent) -> str:
    """Return an event as a sentence: the job's own figure, then its largest part of GPU time."""
    (trend, change), *others = event.changes
    # a change in per cent is the same for one unit of work as for a thousand
    title = name_for_one(trend.kind.title)
    words = f"{title} {'drifts ' if change.shift.gradual else ''}{format_change(trend.kind, change.shift)}"
    behind = [entry for entry in others if entry[0].kind.name in _CAUSES]
    if not behind:
        return f"{words}."
    kind, shift = max(
        ((other.kind, found.shift) for other, found in behind), key=lambda entry: abs(entry[1].difference)
    )
    return f"{words}, {display.lower_first(kind.title)} {format_change(kind, shift)}."


def describe_standing_event(event: ChangeEvent, *, of: bool = False) -> str:
    """Return that a change for the worse still holds: how large it is today, and since when."""
    (trend, _), *_ = event.changes
    title = name_for_one(trend.kind.title)
    group = f"{format_group(*event.group)}: " if of else ""
    return f"{group}{title} still {format_change(trend.kind, event.present_shift)} since {format_day(event.date)}."


def format_day(night: str) -> str:
    """Return a night as people write it, without the year: `7 Oct`."""
    day = date.fromisoformat(night)
    return f"{day.day} {day:%b}"


def describe_headline(night: LatestNight) -> str:
    """Return the headline of the latest night: what is missing, failed or changed."""
    if not night.date:
        return "No night is recorded yet."
    return f"{format_day(night.date)}: {_describe_most_important(night)}"


def _describe_most_important(night: LatestNight) -> str:
    if night.missing_runs:
        sources = list(dict.fromkeys(format_label(run.name or run.source) for run in night.missing_runs))
        return (
            f"no data from {display.join_words(sources if len(sources) <= _NAMED else [*sources[:_NAMED], 'others'])}."
        )
    checks = [check for record in night.records for check in record.checks]
    failed = sum(check.outcome is CheckOutcome.BROKEN for check in checks)
    if failed:
        what = name_failure(checks)
        return f"{f'{what}: ' if what else ''}{display.plural(failed, 'rule')} failed."
    if night.new_events:
        (event, *_) = night.new_events
        of = f"{format_group(*event.group)}: " if len(night.groups) > 1 else ""
        is_older = any(each.group == event.group and night.is_overtaken(each) for each in night.new_events)
        since = f", since {format_day(event.date)}." if is_older else "."
        return f"{of}{describe_event(event).removesuffix('.')}{since}"
    if night.standing_events:
        return describe_standing_event(night.standing_events[0], of=len(night.groups) > 1)
    if night.nights_needed:
        needed = max(count for _, count in night.nights_needed)
        return f"{display.plural(needed, 'more night')} needed before changes show."
    return "no change in the metrics recorded." if night.unrecorded else "no change."


def describe_latest_night(night: LatestNight) -> list[str]:
    """Return what to know of the latest night beside its headline, the most important first."""
    if not night.date:
        return []
    lines = list(_describe_unrecorded_figures(night))
    lines += [line for event in night.new_events for line in _describe_new_event(night, event)]
    for event in night.standing_events:
        lines += [*_describe_new_event(night, event), _name_last_good_night(event)]
    lines += list(_describe_nights_needed(night))
    return lines


def _describe_new_event(night: LatestNight, event: ChangeEvent) -> Iterator[str]:
    """Yield what an event changed from which level, with its interval, and the changed params."""
    trend, change = event.changes[0]
    before, after = (format_value(trend.kind, level) for level in (change.shift.before, change.shift.after))
    of = f" of {format_group(*event.group)}" if len(night.groups) > 1 else ""
    verdict = f", {event.verdict}" if event.verdict != "changed" else ""
    interval = format_change_interval(trend.kind, change.shift)
    since = f"Since {format_day(event.date)}{f' ({format_label(event.label)})' if event.label else ''}"
    between = f" (95% interval {interval})" if interval else ""
    yield f"{since}: {trend.kind.title}{of} {before} → {after}{between}{verdict}."
    if event.changed_params:
        yield f"Changed that night: {format_param_changes(event.changed_params)}."


def _name_last_good_night(event: ChangeEvent) -> str:
    """Return between which nights a change for the worse came, and how to accept it."""
    before = event.last_night_before
    nights = [(before.date, before.label), (event.date, event.label)]
    good, bad = (f"{format_day(day)}{f' ({format_label(label)})' if label else ''}" for day, label in nights)
    return f"Last good night: {good}; first bad one: {bad}. To accept it: gpureport baseline set NAME on newer nights."


def _describe_unrecorded_figures(night: LatestNight) -> Iterator[str]:
    """Yield the figures of each group that are known no longer."""
    for step, model in night.groups:
        titles = [trend.kind.title for trend in night.unrecorded if trend.group == (step, model)]
        if titles:
            of = f" of {format_group(step, model)}" if len(night.groups) > 1 else ""
            yield f"Known before, but not of this night{of}: {'; '.join(titles)}."


def _describe_nights_needed(night: LatestNight) -> Iterator[str]:
    """Yield how many nights each group still needs, unless the headline says so of the only one."""
    for key, needed in night.nights_needed if len(night.groups) > 1 else ():
        of = f" of {format_group(*key)}" if len(night.groups) > 1 else ""
        yield f"{display.plural(needed, 'more night')} needed before changes{of} show."
