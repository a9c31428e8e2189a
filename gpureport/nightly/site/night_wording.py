"""Figures of nights, their changes and the state of the latest night, in words."""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256

from gpureport.nightly.changes.change_detection import LevelShift
from gpureport.nightly.changes.latest_night import LatestNight
from gpureport.nightly.changes.trend import FigureChange, ParamChange, Trend
from gpureport.nightly.history.night_figures import COUNT, FigureKind
from gpureport.report.wording import display

_LABEL = 60
_GPU_TIME = ("gpu_seconds",)
_HOUR = 3600.0


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
        # a thousand units of work can take a fraction of a thousandth, which halves unseen with three decimals
        return f"{display.precise_number(amount / _HOUR)}{display.GAP}GPU-h"
    return display.quantity(amount, kind.unit)


def format_change_size(kind: FigureKind, step: LevelShift) -> str:
    """Return the size of a change with its interval: in points for shares, absolute for counts, else relative."""
    if kind.unit == "1":
        factor, unit = 100.0, f"{display.GAP}points"
    elif kind.unit == COUNT or step.before <= 0:
        factor, unit = 1.0, ""
    else:
        factor, unit = 100 / step.before, f"{display.GAP}%"
    middle, low, high = (display.signed(factor * each) for each in (step.difference, step.low, step.high))
    return f"{middle}{unit} (95{display.GAP}% interval {low} to {high})"


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


def describe_change(trend: Trend, found: FigureChange) -> str:
    """Return a change as one sentence."""
    kind, step = trend.kind, found.shift
    night = f"{found.date} ({format_label(found.label)})" if found.label else found.date
    way = "drifts" if step.gradual else "changed"
    before, after = format_value(kind, step.before), format_value(kind, step.after)
    words = f"{kind.title} {way} from {before} to {after} in the night {night}"
    beside = f"; changed with it: {format_param_changes(found.changed_params)}" if found.changed_params else ""
    return f"{words}, {format_change_size(kind, step)}{beside}"


def describe_latest_night(night: LatestNight) -> list[str]:
    """Return what to say of the latest night, the most important first."""
    if not night.date:
        return ["No night is recorded yet."]
    lines = [
        f"No data from {format_label(run.source)}: {display.clean_sentence(run.reason)}" for run in night.missing_runs
    ]
    lines += list(_describe_unrecorded_figures(night))
    lines += [f"{found.verdict.capitalize()}: {describe_change(trend, found)}." for trend, found in night.new_changes]
    lines += list(_describe_nights_needed(night))
    if not night.new_changes and len(night.nights_needed) < len(night.groups):
        lines.append("No other figure changed." if night.unrecorded else "No figure changed.")
    return lines


def _describe_unrecorded_figures(night: LatestNight) -> Iterator[str]:
    """Yield the figures of each group that are recorded no longer."""
    for step, model in night.groups:
        titles = [trend.kind.title for trend in night.unrecorded if trend.group == (step, model)]
        if titles:
            of = f" of {format_group(step, model)}" if len(night.groups) > 1 else ""
            yield f"Recorded before, but not in this night{of}: {', '.join(titles)}."


def _describe_nights_needed(night: LatestNight) -> Iterator[str]:
    """Yield how many nights each group still needs."""
    for key, needed in night.nights_needed:
        of = f" of {format_group(*key)}" if len(night.groups) > 1 else ""
        yield f"{display.plural(needed, 'more night')} needed before changes{of} can be told."
