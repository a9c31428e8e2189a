"""What the pages of the site show, as text ready to print; templates look the values up by name."""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any

from gpureport.checks import verdict as gate_verdict
from gpureport.checks.verdict import FAILED, NOT_ASSESSED, PASSED, Verdict
from gpureport.findings import CheckOutcome
from gpureport.nightly.changes.change_events import ChangeEvent, EventVerdicts, group_changes, judge_events, own_trend
from gpureport.nightly.changes.latest_night import list_followed_groups, summarize_latest_night
from gpureport.nightly.changes.trend import FigureChange, Point, Trend
from gpureport.nightly.history.night_figures import BY_NAME, FigureKind
from gpureport.nightly.history.night_verdict import judge_nights, judge_run
from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun
from gpureport.nightly.site import trend_curve
from gpureport.nightly.site.night_wording import (
    describe_absence,
    describe_event,
    describe_headline,
    describe_latest_night,
    figure_page_name,
    format_change,
    format_change_interval,
    format_group,
    format_label,
    format_param_changes,
    format_value,
)
from gpureport.recording import Run
from gpureport.report.wording import display
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS

KEY_FIGURES = tuple(
    BY_NAME[name]
    for name in ("gpu_utilization_ratio", "idle_ratio", "lost_ratio", "gpu_seconds_per_1000_work", "energy_joules")
)
"""Figures shown of every night."""

LATEST = 60
"""Nights on the index."""

Content = dict[str, Any]

_STYLES = {FAILED: "worse", NOT_ASSESSED: "unsure", PASSED: "better"}
"""How a verdict looks, by its exit code: red is 1 and nothing else."""

_OUTCOME_STYLES = {CheckOutcome.BROKEN: "worse", CheckOutcome.CANNOT_JUDGE: "unsure"}
_EVENTS = 30
_MAIN = 4
"""Groups whose own figure is drawn on the first page."""


def build_index(
    nights: Sequence[NightlyRecord], trends: Sequence[Trend], reports: Collection[str], accepted: Sequence[Run] = ()
) -> Content:
    """Return the first page.

    Args:
        nights: all nights, the oldest first.
        trends: the course of every figure.
        reports: names of the reports there are.
        accepted: the runs of baselines.
    """
    tonight = summarize_latest_night(nights, trends, accepted)
    verdict = judge_nights(tonight.records)
    events = group_changes(trends)
    verdicts = judge_events(events)
    figures, rows = _list_night_rows(nights, reports)
    return {
        "newest": tonight.date,
        "headline": describe_headline(tonight),
        "state": describe_latest_night(tonight),
        "main": list(_draw_main_curves(trends, list_followed_groups(nights, tonight), verdicts)),
        "verdict": _mark(verdict),
        "limits": list(_limit_rows(tonight.records, reports)),
        "limits_said": verdict.counts if verdict else "",
        "events": [_event_row(event, named=len(tonight.groups) > 1) for event in reversed(events[-_EVENTS:])],
        "unchanged": _explain_no_changes(trends),
        "more_events": max(len(events) - _EVENTS, 0),
        "groups": [
            {"name": format_group(*key), "rows": [_figure_row(trend, verdicts) for trend in held]}
            for key, held in groupby(trends, key=lambda trend: trend.group)
        ],
        "nights": {
            "columns": [kind.title for kind in figures],
            "limits": any(night.checks or night.missing_runs for night in nights),
            "rows": rows[:LATEST],
            "groups": list(dict.fromkeys(row["group"] for row in rows[:LATEST] if not row["reason"])),
        },
        "more_nights": max(len(rows) - LATEST, 0),
    }


def _list_night_rows(
    nights: Sequence[NightlyRecord], reports: Collection[str]
) -> tuple[Sequence[FigureKind], list[Content]]:
    """Return the key figures of any run, and a row per run and source without data, the newest first."""
    runs = [run for night in nights for run in night.runs]
    kinds = [kind for kind in KEY_FIGURES if any(run.value(kind.name) is not None for run in runs)]
    return kinds, [_night_row(night, run, kinds, reports) for night in reversed(nights) for run in night.runs]


def _night_row(night: NightlyRecord, run: NightlyRun, kinds: Sequence[FigureKind], reports: Collection[str]) -> Content:
    verdict = judge_run(night, run)
    return {
        "date": night.date,
        "label": format_label(night.label),
        "name": format_label(run.name or run.source),
        "group": format_group(run.step, run.model) if run.run_id else format_label(run.step),
        "figures": [format_value(kind, run.value(kind.name)) for kind in kinds] if run.run_id else [],
        "findings": _format_findings(run) if run.run_id else "",
        "limits": verdict.counts if verdict else "",
        "verdict": _mark(verdict),
        "reason": display.clean_sentence(run.reason),
        "report": night.page if run.run_id and night.page in reports else "",
    }


def _format_findings(run: NightlyRun) -> str:
    """Return how many findings of each severity call for action; empty if not known."""
    known = {severity: run.value(f"findings_{severity}") for severity in ("problem", "warning")}
    counts = {severity: round(count) for severity, count in known.items() if count is not None}
    found = [display.plural(count, severity) for severity, count in counts.items() if count]
    return ", ".join(found) if any(counts.values()) or not counts else "none"


def _limit_rows(nights: Sequence[NightlyRecord], reports: Collection[str]) -> Iterator[Content]:
    """Yield every limit of some nights, the gravest first."""
    verdicts = [(judge_nights([night]), night.page) for night in nights]
    held = [(check, page) for verdict, page in verdicts if verdict for check in verdict.checks]
    pages = {id(check): page for check, page in held}
    for check in gate_verdict.sort_by_gravity([check for check, _ in held]):
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


def _mark(verdict: Verdict | None) -> Content:
    """Return how a gate ended: the word, the whole line, and how it looks; empty where no rule is set."""
    if verdict is None:
        return {"word": "", "line": "", "style": ""}
    return {"word": verdict.word, "line": verdict.line, "style": _STYLES[verdict.exit_code]}


def _draw_main_curves(
    trends: Sequence[Trend], groups: Sequence[tuple[str, str]], verdicts: EventVerdicts
) -> Iterator[Content]:
    """Yield the course of the own figure of the first groups of the latest night."""
    for group in groups[:_MAIN]:
        trend = own_trend([trend for trend in trends if trend.group == group])
        if trend is not None:
            page = figure_page_name(trend.step, trend.model, trend.kind)
            yield _curve(trend, verdicts) | {"title": trend.kind.title, "group": format_group(*group), "page": page}


def _curve(trend: Trend, verdicts: EventVerdicts) -> Content:
    drawn = trend_curve.draw_curve(trend, verdicts)
    top, bottom = (format_value(trend.kind, drawn[edge]) for edge in ("top", "bottom"))
    return {"curve": drawn, "top": top, "bottom": bottom}


def _figure_row(trend: Trend, verdicts: EventVerdicts) -> Content:
    newest = trend.recorded_points[-1]
    held = f"since {trend.changes[-1].date}" if trend.changes else f"{len(trend.recorded_points)} nights, no change"
    if trend.nights_needed:
        held = f"{display.plural(trend.nights_needed, 'more night')} needed"
    return {
        "title": trend.kind.title,
        "newest": format_value(trend.kind, newest.value),
        "late": "" if newest.date == trend.points[-1].date else newest.date,
        "since": held,
        "curve": trend_curve.draw_small_curve(trend, verdicts),
        "page": figure_page_name(trend.step, trend.model, trend.kind),
    }


def _event_row(event: ChangeEvent, *, named: bool) -> Content:
    changes = [
        _change_row(trend, change, trend.changes.index(change) + 1, event.verdict) for trend, change in event.changes
    ]
    return {
        "date": event.date,
        "label": format_label(event.label),
        "group": format_group(*event.group) if named else "",
        "sentence": describe_event(event),
        "verdict": event.verdict,
        "altered": format_param_changes(event.changed_params),
        "changes": changes,
    }


def _change_row(trend: Trend, found: FigureChange, number: int, verdict: str) -> Content:
    kind, step = trend.kind, found.shift
    return {
        "number": number,
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
        "page": figure_page_name(trend.step, trend.model, kind),
    }


def build_figure_page(
    trend: Trend, verdicts: EventVerdicts, reports: Collection[str], pages: dict[str, str]
) -> Content:
    """Return the page of one figure.

    Args:
        trend: the course of the figure.
        verdicts: verdict of the event of each of its changes.
        reports: names of the reports there are.
        pages: name of the report of each run, by its id and night.
    """
    changes = [
        _change_row(trend, found, number, verdicts.of(trend, found)) for number, found in enumerate(trend.changes, 1)
    ]
    return _curve(trend, verdicts) | {
        "title": trend.kind.title,
        "group": format_group(trend.step, trend.model),
        "first": trend.points[0].date,
        "last": trend.points[-1].date,
        "changes": changes,
        "unchanged": _explain_no_changes([trend]),
        "rows": [_point_row(trend, point, reports, pages) for point in reversed(trend.points)],
        "note": _format_figure_note(trend),
    }


def _explain_no_changes(trends: Sequence[Trend]) -> str:
    """Return what is said without a change: too few nights may hide one."""
    judged = any(not trend.nights_needed for trend in trends)
    return "No change in the nights recorded." if judged else "Not enough data: too few nights hold a value."


def _format_figure_note(trend: Trend) -> str:
    better = {"higher": "Higher is better.", "lower": "Lower is better."}.get(trend.kind.better, "")
    few = f"{display.plural(trend.nights_needed, 'more night')} needed before changes show."
    return f"{better} {few if trend.nights_needed else ''}".strip()


def _point_row(trend: Trend, point: Point, reports: Collection[str], pages: dict[str, str]) -> Content:
    own = [pages.get(f"{point.date} {run.run_id}", "") for run in point.runs]
    text = describe_absence(trend.kind, point) if point.value is None else format_value(trend.kind, point.value)
    report = next((name for name in own if name in reports), "")
    return {"date": point.date, "label": format_label(point.label), "value": text, "report": report}


def map_report_names(nights: Sequence[NightlyRecord]) -> dict[str, str]:
    """Return the name of the report of each run, by its night and id."""
    return {f"{night.date} {run.run_id}": night.page for night in nights for run in night.measured_runs}
