"""The content of the site's pages as text."""

import math
from collections.abc import Collection, Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby, pairwise
from typing import Any

from gpureport.checks.verdict import FAILED, NOT_ASSESSED, PASSED, Verdict, build_missing_check, sort_by_gravity
from gpureport.findings import Check, CheckOutcome
from gpureport.nightly.figures import BY_NAME, FigureKind
from gpureport.nightly.latest import (
    describe_absence,
    describe_event,
    describe_headline,
    describe_latest_night,
    format_change,
    format_change_interval,
    format_group,
    format_label,
    format_param_changes,
    format_value,
    list_followed_groups,
    name_figure_page,
    summarize_latest_night,
)
from gpureport.nightly.records import NightlyRecord, NightlyRun
from gpureport.nightly.trends import (
    ChangeEvent,
    FigureChange,
    Point,
    Trend,
    Verdicts,
    group_changes,
    list_own_trends,
    map_verdicts,
)
from gpureport.recording import Run
from gpureport.report.wording import display
from gpureport.report.wording.terms import OUTCOME_WORDS

KEY_FIGURES = ("gpu_utilization_ratio", "idle_ratio", "lost_ratio", "gpu_seconds_per_1000_work", "energy_joules")
LATEST = 60  # maximum nights on the index
_STYLES = {FAILED: "worse", NOT_ASSESSED: "unsure", PASSED: "better"}
"""The style of a verdict, by exit code; only exit code 1 is red."""
_OUTCOME_STYLES = {CheckOutcome.BROKEN: "worse", CheckOutcome.CANNOT_JUDGE: "unsure"}
_EVENTS = 30
_MAIN = 4
"""Maximum number of groups with a chart on the index page."""
SMALL_NIGHTS = 90
"""Number of recent nights in a small chart."""
_LARGE, _SMALL = (720, 200), (180, 28)
_MARGIN = 4
_LEAST_RANGE = 0.1
"""Minimum range of the vertical axis as a share of the largest value, so that noise stays flat."""
_TICKS, _SHORTEST_MONTH = 8, 28
Content = dict[str, Any]


def build_index(
    nights: Sequence[NightlyRecord], trends: Sequence[Trend], reports: Collection[str], accepted: Sequence[Run] = ()
) -> Content:
    tonight = summarize_latest_night(nights, trends, accepted)
    groups = list_followed_groups(nights, tonight)[:_MAIN]
    # draw the figure in the headline, or else the job's own figure
    changed = {event.group: event.changes[0][:1] for event in reversed([*tonight.new_events, *tonight.standing_events])}
    own = {group: list_own_trends(trends, group)[:1] for group in groups} | changed
    events = group_changes(trends)
    verdicts = map_verdicts(events)
    runs = [(night, run) for night in reversed(nights) for run in night.runs]
    kinds = [BY_NAME[name] for name in KEY_FIGURES if any(run.value(name) is not None for _, run in runs)]
    rows = [_build_night_row(night, run, kinds, reports) for night, run in runs]
    return {
        "newest": tonight.date,
        "headline": describe_headline(tonight),
        "state": describe_latest_night(tonight),
        "main": [_draw(trend, verdicts) for group in groups for trend in own[group]],
        "verdict": _mark([check for record in tonight.records for check in _list_checks(record)]),
        "limits": list(_list_limit_rows(tonight.records, reports)),
        "events": [_build_event_row(event, is_named=len(tonight.groups) > 1) for event in reversed(events[-_EVENTS:])],
        "unchanged": _explain_no_changes(trends),
        "more_events": max(len(events) - _EVENTS, 0),
        "groups": [
            {"name": format_group(*key), "rows": [_build_figure_row(trend, verdicts) for trend in held]}
            for key, held in groupby(trends, key=lambda trend: trend.group)
        ],
        "nights": {
            "columns": [kind.title for kind in kinds],
            "limits": any(night.checks or night.missing_runs for night in nights),
            "rows": rows[:LATEST],
            "groups": {row["group"] for row in rows[:LATEST] if not row["reason"]},
        },
        "more_nights": max(len(rows) - LATEST, 0),
    }


def _build_night_row(
    night: NightlyRecord, run: NightlyRun, kinds: Sequence[FigureKind], reports: Collection[str]
) -> Content:
    is_measured = run.run_id is not None
    known = {severity: run.value(f"findings_{severity}") for severity in ("problem", "warning")}
    counts = {severity: round(count) for severity, count in known.items() if count is not None}
    listed = [display.plural(count, severity) for severity, count in counts.items() if count]
    found = ", ".join([run.failure, *listed] if run.failure else listed)
    return {
        "date": night.date,
        "label": format_label(night.label),
        "name": format_label(run.name or run.source),
        "group": format_group(*run.group) if is_measured else format_label(run.step),
        "figures": [format_value(kind, run.value(kind.name)) for kind in kinds],
        "findings": found or ("no problems or warnings" if counts else ""),
        "verdict": _mark(_list_checks_of_run(night, run)),
        "reason": display.clean_sentence(run.reason),
        "report": night.page if is_measured and night.page in reports else "",
    }


def _list_checks(record: NightlyRecord) -> list[Check]:
    return [*(build_missing_check(run.name or run.source, run.reason) for run in record.missing_runs), *record.checks]


def _list_checks_of_run(record: NightlyRecord, run: NightlyRun) -> list[Check]:
    """Return a run's checks. A step's checks belong to its first run, others to the night's first run."""
    if run.run_id is None:
        return [build_missing_check(run.name or run.source, run.reason)]
    measured = record.measured_runs
    first = {other.step: other for other in reversed(measured)}
    names = {other.name for other in measured}
    return [
        check
        for check in record.checks
        if check.run == run.name or (check.run not in names and run is first.get(check.run, measured[0]))
    ]


def _mark(checks: Sequence[Check]) -> Content:
    if not checks:
        return dict.fromkeys(("word", "line", "counts", "style"), "")
    verdict = Verdict(checks=tuple(checks))
    return {
        "word": verdict.word,
        "line": verdict.line.removeprefix(verdict.word),
        "counts": verdict.counts,
        "style": _STYLES[verdict.exit_code],
    }


def _list_limit_rows(nights: Sequence[NightlyRecord], reports: Collection[str]) -> Iterator[Content]:
    checks = {night.page: _list_checks(night) for night in nights}
    pages = {id(check): page for page, held in checks.items() for check in held}
    for check in sort_by_gravity([check for held in checks.values() for check in held]):
        page = pages[id(check)]
        yield {
            "limit": display.clean(check.limit),
            "outcome": OUTCOME_WORDS[check.outcome],
            "style": _OUTCOME_STYLES.get(check.outcome, "changed"),
            "observed": display.clean_sentence(check.observed),
            "reason": display.clean_sentence(check.reason),
            "run": format_label(check.run),
            "report": page if page in reports else "",
        }


def _draw(trend: Trend, verdicts: Verdicts) -> Content:
    curve = draw_curve(trend, verdicts)
    edges = {edge: format_value(trend.kind, curve[edge]) for edge in ("top", "bottom")}
    named = {"title": trend.kind.title, "group": format_group(*trend.group), "page": name_figure_page(trend)}
    return {**named, "curve": curve, **edges}


def _build_figure_row(trend: Trend, verdicts: Verdicts) -> Content:
    newest = trend.recorded_points[-1]
    held = f"since {trend.changes[-1].date}" if trend.changes else "no confirmed change"
    if trend.nights_needed:
        held = f"{display.plural(trend.nights_needed, 'more night')} needed"
    return {
        "title": trend.kind.title,
        "newest": format_value(trend.kind, newest.value),
        "late": "" if newest.date == trend.points[-1].date else newest.date,
        "since": held,
        "curve": draw_curve(trend, verdicts, is_small=True),
        "page": name_figure_page(trend),
    }


def _build_event_row(event: ChangeEvent, *, is_named: bool) -> Content:
    return {
        "date": event.date,
        "label": format_label(event.label),
        "group": format_group(*event.group) if is_named else "",
        "sentence": describe_event(event),
        "verdict": event.verdict,
        "altered": format_param_changes(event.changed_params),
        "changes": [_build_change_row(trend, change, event.verdict) for trend, change in event.changes],
    }


def _build_change_row(trend: Trend, found: FigureChange, verdict: str) -> Content:
    kind, step = trend.kind, found.shift
    return {
        "number": trend.changes.index(found) + 1,
        "date": found.date,
        "label": format_label(found.label),
        "figure": kind.title,
        "before": format_value(kind, step.before),
        "after": format_value(kind, step.after),
        "change": format_change(kind, step),
        "interval": format_change_interval(kind, step),
        "verdict": verdict,
        "gradual": step.gradual,
        "altered": format_param_changes(found.changed_params),
        "page": name_figure_page(trend),
    }


def build_figure_page(
    trend: Trend, verdicts: Verdicts, reports: Collection[str], nights: Sequence[NightlyRecord]
) -> Content:
    pages = {(night.date, run.run_id): night.page for night in nights for run in night.measured_runs}
    found = [(each, verdicts[trend.group, trend.kind.name, each.date]) for each in trend.changes]
    note = {"higher": "Higher is better.", "lower": "Lower is better."}.get(trend.kind.better, "")
    if trend.nights_needed:
        note += f" {display.plural(trend.nights_needed, 'more night')} needed before changes show."
    return _draw(trend, verdicts) | {
        "first": trend.points[0].date,
        "last": trend.points[-1].date,
        "changes": [_build_change_row(trend, each, verdict) for each, verdict in found],
        "unchanged": _explain_no_changes([trend]),
        "rows": [_build_point_row(trend, point, reports, pages) for point in reversed(trend.points)],
        "note": note.strip(),
    }


def _explain_no_changes(trends: Sequence[Trend]) -> str:
    judged = any(not trend.nights_needed for trend in trends)
    return "No confirmed change in the nights recorded." if judged else "Not enough data: too few nights have a value."


def _build_point_row(
    trend: Trend, point: Point, reports: Collection[str], pages: dict[tuple[str, str | None], str]
) -> Content:
    own = [pages.get((point.date, run.run_id), "") for run in point.runs]
    text = describe_absence(trend.kind, point) if point.value is None else format_value(trend.kind, point.value)
    report = next((name for name in own if name in reports), "")
    return {"date": point.date, "label": format_label(point.label), "value": text, "report": report}


def draw_curve(trend: Trend, verdicts: Verdicts, *, is_small: bool = False) -> Content:
    points = trend.points[-SMALL_NIGHTS:] if is_small else trend.points
    known = [point.value for point in points if point.value is not None]
    first, last = (date.fromisoformat(point.date) for point in (points[0], points[-1]))
    bottom, top = _find_range(known, 1.0 if trend.kind.unit == "1" else math.inf)
    (width, height), days = _SMALL if is_small else _LARGE, (last - first).days

    def x(night: str) -> str:
        share = (date.fromisoformat(night) - first).days / days if days else 0.5
        return f"{_MARGIN + share * (width - 2 * _MARGIN):.1f}".removesuffix(".0")

    def y(value: float) -> str:
        share = (min(max(value, bottom), top) - bottom) / (top - bottom)
        return f"{height - _MARGIN - share * (height - 2 * _MARGIN):.1f}".removesuffix(".0")

    # runs of consecutive nights with a value
    parts = [list(own) for held, own in groupby(points, key=lambda point: point.value is not None) if held]
    stretches = [[(x(point.date), y(point.value or 0.0)) for point in own] for own in parts]
    changes, lacking = trend.changes, [point for point in points if point.value is None]
    # the visible part of the levels before and after each change
    edges = [trend.recorded_points[0].date, *(change.date for change in changes), points[-1].date]
    levels = [*(each.shift.before for each in changes[:1]), *(each.shift.after for each in changes)]
    held = [each for each in zip(pairwise(edges), levels, strict=False) if each[0][1] >= points[0].date]
    return {
        "width": width,
        "height": height,
        "lines": ["M" + "L".join(f"{x} {y}" for x, y in own) for own in stretches if len(own) > 1],
        "dots": [dot for own in stretches for dot in own],
        # dots without a line
        "lone": [own[0] for own in stretches if len(own) == 1],
        "levels": [(x(max(start, points[0].date)), y(level), x(end)) for (start, end), level in held],
        "marks": [
            {"x": x(each.date), "number": number, "verdict": verdicts[trend.group, trend.kind.name, each.date]}
            for number, each in enumerate(changes, 1)
            if any(point.date == each.date for point in points)
        ],
        "absent": [x(point.date) for point in lacking],
        "absences": list(dict.fromkeys(describe_absence(trend.kind, point) for point in lacking)),
        "ticks": [{"x": x(day.isoformat()), "text": text} for day, text in choose_date_ticks(first, last)],
        "top": top,
        "bottom": bottom,
    }


def choose_date_ticks(first: date, last: date) -> list[tuple[date, str]]:
    """Return at most eight dates, 1 to 14 days apart or on the first of a month."""
    days = (last - first).days
    apart = next((each for each in (1, 2, 7, 14) if days < _TICKS * each), 0)
    if apart:
        chosen = [first + timedelta(days=number) for number in range(0, days + 1, apart)]
        return [(day, f"{day.day} {day:%b}") for day in chosen]
    months = next(each for each in (1, 2, 3, 6, 12, 24, 60, 120, 1200) if days < _TICKS * _SHORTEST_MONTH * each)
    firsts = [date(year, month, 1) for year in range(first.year, last.year + 1) for month in range(1, 13)]
    chosen = [day for day in firsts[::months] if first <= day <= last]
    return [(day, f"{day:%b}{f' {day.year}' if day.month == 1 else ''}") for day in chosen]


def _find_range(values: Sequence[float], most: float) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    missing = max(abs(low), abs(high)) * _LEAST_RANGE - (high - low)
    if missing <= 0 and high > low:
        return low, high
    room = missing / 2 or 1.0
    return (low - room if low < 0 else max(low - room, 0.0)), max(min(high + room, most), high)
