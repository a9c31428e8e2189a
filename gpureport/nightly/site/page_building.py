"""What the pages of the site show, as text ready to print."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from gpureport.checks import gate_verdict
from gpureport.checks.gate_verdict import FAILED, NOT_ASSESSED, PASSED, Verdict
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
from gpureport.nightly.site.page_model import (
    ChangeRow,
    EventRow,
    FigurePage,
    FigureRow,
    Group,
    Index,
    LimitRow,
    MainCurve,
    NightRow,
    NightTable,
    PointRow,
    VerdictMark,
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

_STYLES = {FAILED: "worse", NOT_ASSESSED: "unsure", PASSED: "better"}
"""How a verdict looks, by its exit code: red is 1 and nothing else."""

_OUTCOME_STYLES = {CheckOutcome.BROKEN: "worse", CheckOutcome.CANNOT_JUDGE: "unsure"}
_EVENTS = 30
_MAIN = 4
"""Groups whose own figure is drawn on the first page."""


def build_index(
    nights: Sequence[NightlyRecord], trends: Sequence[Trend], reports: Collection[str], accepted: Sequence[Run] = ()
) -> Index:
    """Return the first page.

    Args:
        nights: all nights, the oldest first.
        trends: the course of every figure.
        reports: names of the reports there are.
        accepted: the runs of baselines.
    """
    table = _build_night_table(nights, reports)
    tonight = summarize_latest_night(nights, trends, accepted)
    verdict = judge_nights(tonight.records)
    events = group_changes(trends)
    verdicts = judge_events(events)
    return Index(
        newest=tonight.date,
        headline=describe_headline(tonight),
        state=tuple(describe_latest_night(tonight)),
        main=tuple(_build_main_curves(trends, list_followed_groups(nights, tonight), verdicts)),
        verdict=_verdict_mark(verdict),
        limits=tuple(_limit_rows(tonight.records, reports)),
        limits_said=verdict.counts if verdict else "",
        events=tuple(_event_row(event, named=len(tonight.groups) > 1) for event in reversed(events[-_EVENTS:])),
        unchanged=_explain_no_changes(trends),
        more_events=max(len(events) - _EVENTS, 0),
        groups=tuple(
            Group(name=format_group(*key), rows=tuple(_figure_row(trend, verdicts) for trend in held))
            for key, held in groupby(trends, key=lambda trend: trend.group)
        ),
        nights=replace(table, rows=table.rows[:LATEST]),
        more_nights=max(len(table.rows) - LATEST, 0),
    )


def _build_night_table(nights: Sequence[NightlyRecord], reports: Collection[str]) -> NightTable:
    """Return a row per run and source without data, the newest first, with the figures of any run."""
    runs = [run for night in nights for run in night.runs]
    kinds = [kind for kind in KEY_FIGURES if any(run.value(kind.name) is not None for run in runs)]
    return NightTable(
        columns=tuple(kind.title for kind in kinds),
        limits=any(night.checks or night.missing_runs for night in nights),
        rows=tuple(_night_row(night, run, kinds, reports) for night in reversed(nights) for run in night.runs),
    )


def _limit_rows(nights: Sequence[NightlyRecord], reports: Collection[str]) -> Iterator[LimitRow]:
    """Yield every limit of some nights, the gravest first."""
    verdicts = [(judge_nights([night]), night.page) for night in nights]
    held = [(check, page) for verdict, page in verdicts if verdict for check in verdict.checks]
    pages = {id(check): page for check, page in held}
    for check in gate_verdict.sort_by_gravity([check for check, _ in held]):
        page = pages[id(check)]
        yield LimitRow(
            limit=display.clean(check.limit),
            outcome=OUTCOME_WORDS[check.outcome],
            style=_OUTCOME_STYLES.get(check.outcome, "changed"),
            observed=display.clean_sentence(check.observed),
            reason=display.clean_sentence(check.reason),
            run=format_label(check.run),
            report=page if page in reports else "",
        )


def _verdict_mark(verdict: Verdict | None) -> VerdictMark:
    if verdict is None:
        return VerdictMark(word="", line="", style="")
    return VerdictMark(word=verdict.word, line=verdict.line, style=_STYLES[verdict.exit_code])


def _night_row(
    night: NightlyRecord, run: NightlyRun, kinds: Sequence[FigureKind], reports: Collection[str]
) -> NightRow:
    verdict = judge_run(night, run)
    return NightRow(
        date=night.date,
        label=format_label(night.label),
        name=format_label(run.name or run.source),
        group=format_group(run.step, run.model) if run.run_id else format_label(run.step),
        values=tuple(format_value(kind, run.value(kind.name)) for kind in kinds) if run.run_id else (),
        findings=_format_findings(run) if run.run_id else "",
        limits=verdict.counts if verdict else "",
        verdict=_verdict_mark(verdict),
        reason=display.clean_sentence(run.reason),
        report=night.page if run.run_id and night.page in reports else "",
    )


def _format_findings(run: NightlyRun) -> str:
    """Return how many findings of each severity call for action; empty if not known."""
    known = {severity: run.value(f"findings_{severity}") for severity in ("problem", "warning")}
    counts = {severity: round(count) for severity, count in known.items() if count is not None}
    found = [display.plural(count, severity) for severity, count in counts.items() if count]
    return ", ".join(found) if any(counts.values()) or not counts else "none"


def _build_main_curves(
    trends: Sequence[Trend], groups: Sequence[tuple[str, str]], verdicts: EventVerdicts
) -> Iterator[MainCurve]:
    """Yield the course of the own figure of the first groups of the latest night."""
    for group in groups[:_MAIN]:
        trend = own_trend([trend for trend in trends if trend.group == group])
        if trend is not None:
            drawing = trend_curve.draw_curve(trend, verdicts)
            yield MainCurve(
                title=trend.kind.title,
                group=format_group(*group),
                curve=drawing,
                top=format_value(trend.kind, drawing.top),
                bottom=format_value(trend.kind, drawing.bottom),
                page=figure_page_name(trend.step, trend.model, trend.kind),
            )


def _figure_row(trend: Trend, verdicts: EventVerdicts) -> FigureRow:
    newest = trend.recorded_points[-1]
    held = f"since {trend.changes[-1].date}" if trend.changes else f"{len(trend.recorded_points)} nights, no change"
    if trend.nights_needed:
        held = f"{display.plural(trend.nights_needed, 'more night')} needed"
    return FigureRow(
        title=trend.kind.title,
        newest=format_value(trend.kind, newest.value),
        late="" if newest.date == trend.points[-1].date else newest.date,
        since=held,
        curve=trend_curve.draw_small_curve(trend, verdicts),
        page=figure_page_name(trend.step, trend.model, trend.kind),
    )


def _event_row(event: ChangeEvent, *, named: bool) -> EventRow:
    return EventRow(
        date=event.date,
        label=format_label(event.label),
        group=format_group(*event.group) if named else "",
        sentence=describe_event(event),
        verdict=event.verdict,
        altered=format_param_changes(event.changed_params),
        changes=tuple(
            _change_row(trend, change, trend.changes.index(change) + 1, event.verdict)
            for trend, change in event.changes
        ),
    )


def build_change_rows(trend: Trend, verdicts: EventVerdicts) -> tuple[ChangeRow, ...]:
    """Return the changes of a figure, the earliest first; `verdicts` are those of their events."""
    return tuple(
        _change_row(trend, found, number, verdicts.of(trend, found)) for number, found in enumerate(trend.changes, 1)
    )


def _change_row(trend: Trend, found: FigureChange, number: int, verdict: str) -> ChangeRow:
    kind, step = trend.kind, found.shift
    return ChangeRow(
        number=number,
        date=found.date,
        label=format_label(found.label),
        figure=kind.title,
        before=format_value(kind, step.before),
        after=format_value(kind, step.after),
        change=format_change(kind, step),
        interval=format_change_interval(kind, step),
        verdict=verdict,
        gradual=step.gradual,
        altered=format_param_changes(found.changed_params),
        page=figure_page_name(trend.step, trend.model, kind),
    )


def build_figure_page(
    trend: Trend, verdicts: EventVerdicts, reports: Collection[str], pages: dict[str, str]
) -> FigurePage:
    """Return the page of one figure.

    Args:
        trend: the course of the figure.
        verdicts: verdict of the event of each of its changes.
        reports: names of the reports there are.
        pages: name of the report of each run, by its id and night.
    """
    drawing = trend_curve.draw_curve(trend, verdicts)
    kind = trend.kind
    return FigurePage(
        title=kind.title,
        group=format_group(trend.step, trend.model),
        curve=drawing,
        top=format_value(kind, drawing.top),
        bottom=format_value(kind, drawing.bottom),
        first=trend.points[0].date,
        last=trend.points[-1].date,
        changes=build_change_rows(trend, verdicts),
        unchanged=_explain_no_changes([trend]),
        rows=tuple(_point_row(trend, point, reports, pages) for point in reversed(trend.points)),
        note=_format_figure_note(trend),
    )


def _explain_no_changes(trends: Sequence[Trend]) -> str:
    """Return what is said without a change: too few nights may hide one."""
    judged = any(not trend.nights_needed for trend in trends)
    return "No change in the nights recorded." if judged else "Not enough data: too few nights hold a value."


def _format_figure_note(trend: Trend) -> str:
    better = {"higher": "Higher is better.", "lower": "Lower is better."}.get(trend.kind.better, "")
    few = f"{display.plural(trend.nights_needed, 'more night')} needed before changes show."
    return f"{better} {few if trend.nights_needed else ''}".strip()


def _point_row(trend: Trend, point: Point, reports: Collection[str], pages: dict[str, str]) -> PointRow:
    own = [pages.get(f"{point.date} {run.run_id}", "") for run in point.runs]
    text = describe_absence(trend.kind, point) if point.value is None else format_value(trend.kind, point.value)
    report = next((name for name in own if name in reports), "")
    return PointRow(date=point.date, label=format_label(point.label), value=text, report=report)


def map_report_names(nights: Sequence[NightlyRecord]) -> dict[str, str]:
    """Return the name of the report of each run, by its night and id."""
    return {f"{night.date} {run.run_id}": night.page for night in nights for run in night.measured_runs}
