"""The latest night: what changed, is missing or cannot be compared yet, in words and as a check."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256

from gpureport.checks.limit import NO_REASON, Why
from gpureport.checks.verdict import name_failure, select_checks
from gpureport.comparison.figures import PER_WORK
from gpureport.findings import Check, CheckOutcome
from gpureport.nightly.figures import COUNT, FigureKind
from gpureport.nightly.records import NightlyRecord, NightlyRun, name_models
from gpureport.nightly.shifts import FEWEST, SHORTEST, LevelShift
from gpureport.nightly.trends import (
    ChangeEvent,
    ParamChange,
    Point,
    Trend,
    build_trends,
    group_changes,
    list_own_trends,
)
from gpureport.recording import Run
from gpureport.report.wording import display
from gpureport.report.wording.differences import format_percent_change, format_percent_range
from gpureport.report.wording.scales import GPU_HOURS, GPU_SECONDS
from gpureport.report.wording.terms import name_for_one

ORIGIN = "--fail-on-change"
_RULE, _STANDING_RULE = "no new change for the worse", "no standing change for the worse"
_VERDICTS = ("worse", "changed", "better")
_NAMED = 2
_LABEL, _MANY_SECONDS = 60, 10_000  # smaller amounts are in GPU-seconds, so that nights share a unit
_GONE = 0.005
"""Share below which a figure is reported as gone."""
_CAUSES = frozenset({"waiting_ratio", "throttled_ratio", "startup_ratio", "idle_ratio"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestNight:
    """The latest night of a history: its records, one per parallel job, and its groups of runs.

    `new_events` are changes first seen on this night, `standing_events` earlier changes for the worse that persist, and
    `unrecorded` figures, except causes, that its runs no longer record.
    """

    date: str
    records: tuple[NightlyRecord, ...]
    groups: tuple[tuple[str, str], ...]
    new_events: tuple[ChangeEvent, ...]
    standing_events: tuple[ChangeEvent, ...]
    unrecorded: tuple[Trend, ...]
    nights_needed: dict[tuple[str, str], int]
    own_trends: tuple[Trend, ...]

    @property
    def missing_runs(self) -> tuple[NightlyRun, ...]:
        return tuple(run for night in self.records for run in night.missing_runs)

    @property
    def failed_runs(self) -> tuple[NightlyRun, ...]:
        return tuple(run for night in self.records for run in night.measured_runs if run.failure)

    def name(self, group: tuple[str, str], text: str = "{}") -> str:
        return text.format(format_group(*group)) if len({*self.groups, group}) > 1 else ""


def summarize_latest_night(
    nights: Sequence[NightlyRecord],
    trends: Sequence[Trend],
    accepted: Sequence[Run] = (),
    record: NightlyRecord | None = None,
) -> LatestNight:
    """Return the latest night, or that of `record` without later nights and that night's other calls.

    A standing change is dropped once a run accepted as a baseline shows it.
    """
    if record is not None:
        nights = [night for night in nights if night.date <= record.date]
        trends = build_trends(nights)
    date = nights[-1].date if nights else ""
    own = tuple(night for night in nights if night.date == date) if record is None else (record,)
    groups = sorted({run.group for night in own for run in night.measured_runs if not run.failure})
    known = [trend for trend in trends if trend.group in groups]
    recorded = [trend for trend in known if trend.points[-1].value is not None]
    judged = {group: list_own_trends(recorded, group) for group in groups}
    needed = {group: min((trend.nights_needed for trend in judged[group]), default=FEWEST) for group in groups}
    events = group_changes(known)
    latest = {event.group: event.date for event in events if event.is_new}
    new = [event for event in events if event.is_new]
    new.sort(key=lambda event: (event.date < latest[event.group], _VERDICTS.index(event.verdict)))
    worse = [event for event in events if event.verdict == "worse" and not (event.is_new or event.is_undone)]
    return LatestNight(
        date=date,
        records=own,
        groups=tuple(groups),
        new_events=tuple(new),
        standing_events=tuple(event for event in worse if not any(_is_accepted(event, run) for run in accepted)),
        unrecorded=tuple(each for each in known if each.is_no_longer_recorded and each.kind.name not in _CAUSES),
        nights_needed={group: count for group, count in needed.items() if count},
        own_trends=tuple(own[0] for own in judged.values() if own),
    )


def _is_accepted(event: ChangeEvent, run: Run) -> bool:
    step, model = event.group
    trend, change = event.changes[0]
    shown = trend.recorded_points[change.shift.place].runs
    is_newer = all(each.started is not None and run.started >= each.started for each in shown)
    return run.step in {step, None} and name_models(run) == model and is_newer


def list_followed_groups(nights: Sequence[NightlyRecord], latest: LatestNight) -> list[tuple[str, str]]:
    """Return the latest night's groups and, if it lacks a run, those of the night before."""
    groups = list(latest.groups)
    dates = [night.date for night in nights if night.measured_runs and night.date < latest.date]
    if (latest.missing_runs or latest.failed_runs) and dates:
        before = {run.group for night in nights if night.date == dates[-1] for run in night.measured_runs}
        groups += sorted(before.difference(groups))
    return groups


def describe_headline(night: LatestNight) -> str:
    if not night.date:
        return "No night has been recorded yet."
    failed = [f"{night.name(run.group, '{}: ')}{run.failure}." for run in night.failed_runs]
    return f"{format_day(night.date)}: {failed[0] if failed else _describe_most_important(night)}"


def _describe_most_important(night: LatestNight) -> str:
    if night.missing_runs:
        sources = list(dict.fromkeys(format_label(run.name or run.source) for run in night.missing_runs))
        named = sources if len(sources) <= _NAMED else [*sources[:_NAMED], "others"]
        return f"no data from {display.join_words(named)}."
    # a change is more informative than its failed rule
    failed = [check for record in night.records for check in select_checks(record.checks, CheckOutcome.BROKEN)]
    if any(check.origin != ORIGIN for check in failed):
        what = name_failure(failed)
        return f"{f'{what}: ' if what else ''}{display.plural(len(failed), 'rule')} failed."
    if night.new_events:
        (event, *_) = night.new_events
        # give the date if the night also shows an older change in the job
        is_one_of_several = any(each.group == event.group and each.date < event.date for each in night.new_events)
        since = f", since {format_day(event.date)}." if is_one_of_several else "."
        return f"{night.name(event.group, '{}: ')}{describe_event(event).removesuffix('.')}{since}"
    if night.standing_events:
        (event, *_) = night.standing_events
        return f"{night.name(event.group, '{}: ')}{describe_standing_event(event)}"
    for own in night.own_trends:
        if own.emerging:
            return f"{night.name(own.group, '{}: ')}{_describe_unusual(own, own.emerging, 'a change')}"
    shown = ((each.kind, each.points[-1].value) for each in night.own_trends if len(night.groups) == 1)
    said = "".join(f"{kind.title} {format_value(kind, value)}, " for kind, value in shown)
    result = f"no confirmed change{' in the metrics recorded' if night.unrecorded else ''}"
    if night.nights_needed:
        result = f"{display.plural(max(night.nights_needed.values()), 'more night')} needed before changes show"
    return f"{said}{result}."


def describe_latest_night(night: LatestNight) -> list[str]:
    lines = [
        f"New GPU model: the history of {format_group(*trend.group)} starts tonight; earlier nights ran on other GPUs."
        for trend in night.own_trends
        if any(point.is_on_other_gpus for point in trend.points) and not any(point.runs for point in trend.points[:-1])
    ]
    for group in night.groups:
        # figures that are no longer recorded
        if titles := [trend.kind.title for trend in night.unrecorded if trend.group == group]:
            lines.append(f"Recorded before, but not on this night{night.name(group, ' for {}')}: {'; '.join(titles)}.")
    lines += [line for event in night.new_events for line in _describe_new_event(night, event)]
    for event in night.standing_events:
        trend, change = event.changes[0]
        good, bad = name_night(trend.recorded_points[change.shift.place - 1]), name_night(event)
        accept = "To accept the change, run gpureport baseline set NAME on newer runs."
        lines += [*_describe_new_event(night, event), f"Last good night: {good}; first bad night: {bad}. {accept}"]
    needed = night.nights_needed.items() if len(night.groups) > 1 else ()
    more = ((display.plural(count, "more night"), night.name(group, " of {}")) for group, count in needed)
    return [*lines, *(f"{nights} needed before changes{of} show." for nights, of in more)]


def _describe_new_event(night: LatestNight, event: ChangeEvent) -> Iterator[str]:
    trend, change = event.changes[0]
    before, after = (format_value(trend.kind, level) for level in (change.shift.before, change.shift.after))
    verdict = f", {event.verdict}" if event.verdict != "changed" else ""
    interval = format_change_interval(trend.kind, change.shift)
    said = f"{before} → {after}{f' (95% interval {interval})' if interval else ''}"
    yield f"Since {name_night(event)}: {trend.kind.title}{night.name(event.group, ' of {}')} {said}{verdict}."
    if event.changed_params:
        yield f"Changed that night: {format_param_changes(event.changed_params)}."


def check_for_worse_change(
    night: LatestNight, date: str, groups: Collection[tuple[str, str]], *, standing: bool = False
) -> Iterator[Check]:
    for group in sorted(groups):
        outcome, observed, reason = _judge_group(night, date, group, standing=standing)
        yield Check(
            limit=_STANDING_RULE if standing else _RULE,
            run=group[0] or format_group(*group),
            outcome=outcome,
            observed=observed,
            reason=reason.text,
            reason_code=reason.code,
            origin=ORIGIN,
        )


def _judge_group(
    night: LatestNight, date: str, group: tuple[str, str], *, standing: bool
) -> tuple[CheckOutcome, str, Why]:
    unknown = CheckOutcome.CANNOT_JUDGE
    if night.date != date:
        return unknown, "", Why("later_night", f"the history contains a later night, {night.date}")
    new = [event for event in night.new_events if event.group == group and event.verdict == "worse"]
    said = [describe_event(event) for event in new if not event.is_undone]
    if standing:
        said += [describe_standing_event(event) for event in night.standing_events if event.group == group]
    if said:
        return CheckOutcome.BROKEN, "; ".join(each.removesuffix(".") for each in said), NO_REASON
    if group not in night.groups:
        return unknown, "", Why("job_failed", "the job failed")
    if needed := night.nights_needed.get(group):
        of = "".join(f" with {own.kind.title}" for own in night.own_trends if own.group == group)
        return unknown, "", Why("few_nights", f"{display.plural(needed, 'more night')}{of} needed before changes show")
    if gone := [trend.kind.title for trend in night.unrecorded if trend.group == group]:
        return unknown, "", Why("not_recorded", f"recorded before, but not on this night: {'; '.join(gone)}")
    return CheckOutcome.PASSED, _STANDING_RULE if standing else _RULE, NO_REASON


def format_value(kind: FigureKind, amount: float | None) -> str:
    if amount is None:
        return display.NOT_RECORDED
    if kind.unit == COUNT:
        return display.integer(amount) if amount == round(amount) else display.number(amount)
    if kind.unit == "currency":
        return display.money(amount, kind.currency)
    if kind.unit == "1/s":
        return f"{display.number(amount)}{display.GAP}/s"
    as_gpu_time = (GPU_SECONDS if amount < _MANY_SECONDS else GPU_HOURS).format(amount)
    return as_gpu_time if kind.name.startswith("gpu_seconds") else display.quantity(amount, kind.unit)


def describe_absence(kind: FigureKind, point: Point) -> str:
    if not point.runs:
        return "measured on other GPUs" if point.is_on_other_gpus else "no data"
    if failure := next((run.failure for run in point.runs if run.failure), ""):
        return failure
    if any(run.value(kind.name) is not None for run in point.runs):
        return "work in another unit"
    is_unstated = kind.is_of_work and all(run.value(PER_WORK) is None for run in point.runs)
    return "no work stated" if is_unstated else "not recorded or not assessed"


def format_change_interval(kind: FigureKind, step: LevelShift) -> str:
    if kind.unit not in (COUNT, "1") and step.before > 0:
        return display.drop_equal_ends(format_percent_range((1 + step.low / step.before, 1 + step.high / step.before)))
    scale, unit = (100.0, f"{display.GAP}points") if kind.unit == "1" else (1.0, "")
    return display.format_interval((step.low, step.high), lambda end: display.signed(scale * end), unit)


def format_change(kind: FigureKind, step: LevelShift) -> str:
    """Return a change such as `−50%`, `20% → 9%` or `gone`."""
    if kind.unit == "1" and step.after < _GONE <= step.before:
        return "gone"
    if kind.unit in ("1", COUNT) or step.before <= 0:
        return f"{format_value(kind, step.before)} → {format_value(kind, step.after)}"
    return format_percent_change(step.after / step.before)


def format_param_changes(entries: Sequence[ParamChange]) -> str:
    told = [
        [display.NOT_RECORDED if value is None else format_label(value) for value in (each.before, each.after)]
        for each in entries
    ]
    return "; ".join(f"{display.clean(each.key)} {' → '.join(pair)}" for each, pair in zip(entries, told, strict=True))


def format_label(text: str) -> str:
    return display.shorten_middle(display.clean(text), _LABEL)


def format_group(step: str, model: str) -> str:
    gpus = format_label(model) or "GPUs whose model was not recorded"
    return f"{format_label(step)} · {gpus}" if step else gpus


def name_figure_page(trend: Trend) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", " ".join(trend.group).lower()).strip("-")[:40]
    digest = sha256("\n".join(trend.group).encode()).hexdigest()[:6]
    return f"{plain or 'gpus'}-{digest}-{trend.kind.name}"


def describe_event(event: ChangeEvent) -> str:
    (trend, change), *others = event.changes
    # in per cent, a change per unit of work equals a change per thousand units
    title = name_for_one(trend.kind.title)
    words = f"{title} {'drifts ' if change.shift.gradual else ''}{format_change(trend.kind, change.shift)}"
    behind = [(other.kind, found.shift) for other, found in others if other.kind.name in _CAUSES]
    if not behind:
        return f"{words}."
    kind, shift = max(behind, key=lambda entry: abs(entry[1].difference))
    return f"{words}, {display.lower_first(kind.title)} {format_change(kind, shift)}."


def describe_standing_event(event: ChangeEvent) -> str:
    trend, change = event.changes[0]
    day = format_day(event.date)
    if shift := trend.emerging:
        is_over = change.shift.is_undone_at(shift.after)
        return _describe_unusual(trend, shift, f"undoing the change of {day}" if is_over else "a new change")
    # use today's level, because later changes may have moved it
    size = format_change(trend.kind, replace(change.shift, after=trend.changes[-1].shift.after))
    return f"{name_for_one(trend.kind.title)} still {size} since {day}."


def _describe_unusual(trend: Trend, shift: LevelShift, what: str) -> str:
    tonight, usual = (format_value(trend.kind, value) for value in (trend.points[-1].value, shift.before))
    left = max(SHORTEST + shift.place - len(trend.recorded_points), 1)
    return f"{trend.kind.title} {tonight} instead of {usual}; {what} needs {display.plural(left, 'more such night')}."


def format_day(night: str) -> str:
    day = date.fromisoformat(night)
    return f"{day.day} {day:%b}"


def name_night(night: ChangeEvent | Point) -> str:
    return f"{format_day(night.date)}{f' ({format_label(night.label)})' if night.label else ''}"
