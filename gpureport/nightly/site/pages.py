"""What the pages of the site show, as text ready to print."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from gpureport.checks import result
from gpureport.findings import Check
from gpureport.nightly.changes.newest import newest
from gpureport.nightly.changes.trend import Change, Point, Trend
from gpureport.nightly.history.figures import BY_NAME, FigureKind
from gpureport.nightly.history.night import Night, Part
from gpureport.nightly.site import curve, shown
from gpureport.nightly.site.model import (
    ChangeRow,
    FigurePage,
    FigureRow,
    Group,
    Index,
    LimitRow,
    NightRow,
    NightTable,
    PointRow,
)
from gpureport.report.wording import display

KEY_FIGURES = tuple(
    BY_NAME[name]
    for name in ("gpu_utilization_ratio", "idle_ratio", "lost_ratio", "gpu_seconds_per_1000_work", "energy_joules")
)
"""Figures shown of every night."""

LATEST = 60
"""Nights on the index."""

_CHANGES = 60


def index(nights: Sequence[Night], trends: Sequence[Trend], reports: Collection[str]) -> Index:
    """Return the first page.

    Args:
        nights: all nights, the oldest first.
        trends: the course of every figure.
        reports: names of the reports there are.
    """
    table = night_table(nights, reports)
    tonight = newest(nights, trends)
    checks = [check for night in tonight.nights for check in night.checks]
    changes = sorted((row for trend in trends for row in change_rows(trend)), key=lambda row: row.date, reverse=True)
    return Index(
        newest=tonight.date,
        state=tuple(shown.state(tonight)),
        limits=tuple(_limit_rows(tonight.nights, reports)),
        limits_said=result.tally(checks),
        changes=tuple(changes[:_CHANGES]),
        unchanged=_unchanged(trends),
        more_changes=max(len(changes) - _CHANGES, 0),
        groups=tuple(
            Group(name=shown.group(*key), rows=tuple(_figure_row(trend) for trend in held))
            for key, held in groupby(trends, key=lambda trend: trend.group)
        ),
        nights=replace(table, rows=table.rows[:LATEST]),
        more_nights=max(len(table.rows) - LATEST, 0),
    )


def night_table(nights: Sequence[Night], reports: Collection[str]) -> NightTable:
    """Return a row for each run and each source without data, the newest first, with the figures that any run has."""
    parts = [part for night in nights for part in night.parts]
    kinds = [kind for kind in KEY_FIGURES if any(part.value(kind.name) is not None for part in parts)]
    return NightTable(
        columns=tuple(kind.title for kind in kinds),
        limits=any(night.checks for night in nights),
        rows=tuple(_night_row(night, part, kinds, reports) for night in reversed(nights) for part in night.parts),
    )


def _limit_rows(nights: Sequence[Night], reports: Collection[str]) -> Iterator[LimitRow]:
    """Yield every limit of some nights, the gravest first."""
    held = [(check, night.page) for night in nights for check in night.checks]
    pages = {id(check): page for check, page in held}
    for check in result.ordered([check for check, _ in held]):
        page = pages[id(check)]
        yield LimitRow(
            limit=display.clean(check.limit),
            outcome=check.outcome.value,
            grave=check.outcome in result.GRAVE,
            observed=display.clean_sentence(check.observed),
            reason=display.clean_sentence(check.reason),
            run=shown.label(check.run),
            report=page if page in reports else "",
        )


def _limits(night: Night, part: Part) -> list[Check]:
    """Return the limits of a run; one of a step, or of no run at all, stands with the first run of it."""
    first = {other.step: other for other in reversed(night.measured)}
    names = {other.name for other in night.measured}
    steps = {other.step for other in night.measured}
    return [
        check
        for check in night.checks
        if (check.run == part.name)
        or (check.run not in names and part is first.get(check.run if check.run in steps else night.measured[0].step))
    ]


def _night_row(night: Night, part: Part, kinds: Sequence[FigureKind], reports: Collection[str]) -> NightRow:
    checks = _limits(night, part) if part.run_id else []
    return NightRow(
        date=night.date,
        label=shown.label(night.label),
        name=shown.label(part.name or part.source),
        group=shown.group(part.step, part.model) if part.run_id else shown.label(part.step),
        values=tuple(shown.value(kind, part.value(kind.name)) for kind in kinds) if part.run_id else (),
        findings=_findings(part) if part.run_id else "",
        limits=result.tally(checks),
        kept=not any(check.outcome in result.GRAVE for check in checks),
        reason=display.clean_sentence(part.reason),
        report=night.page if part.run_id and night.page in reports else "",
    )


def _findings(part: Part) -> str:
    """Return how many findings of each severity there are that calls for action; empty where that is not known."""
    known = {severity: part.value(f"findings_{severity}") for severity in ("problem", "warning")}
    counts = {severity: round(count) for severity, count in known.items() if count is not None}
    found = [display.plural(count, severity) for severity, count in counts.items() if count]
    return ", ".join(found) if any(counts.values()) or not counts else "none"


def _figure_row(trend: Trend) -> FigureRow:
    newest = trend.known[-1]
    held = f"since {trend.changes[-1].date}" if trend.changes else f"{len(trend.known)} nights, no change"
    if trend.missing:
        held = f"{display.plural(trend.missing, 'more night')} needed"
    return FigureRow(
        title=trend.kind.title,
        newest=shown.value(trend.kind, newest.value),
        late="" if newest.date == trend.points[-1].date else newest.date,
        since=held,
        curve=curve.small(trend),
        page=shown.address(trend.step, trend.model, trend.kind),
    )


def change_rows(trend: Trend) -> tuple[ChangeRow, ...]:
    """Return the changes of a figure, the earliest first."""
    return tuple(_change_row(trend, found, number) for number, found in enumerate(trend.changes, 1))


def _change_row(trend: Trend, found: Change, number: int) -> ChangeRow:
    kind, step = trend.kind, found.step
    return ChangeRow(
        number=number,
        date=found.date,
        label=shown.label(found.label),
        figure=kind.title,
        group=shown.group(trend.step, trend.model),
        before=shown.value(kind, step.before),
        after=shown.value(kind, step.after),
        size=shown.size(kind, step),
        verdict=found.verdict,
        gradual=step.gradual,
        altered=shown.altered(found.altered),
        page=shown.address(trend.step, trend.model, kind),
    )


def figure_page(trend: Trend, reports: Collection[str], pages: dict[str, str]) -> FigurePage:
    """Return the page of one figure.

    Args:
        trend: the course of the figure.
        reports: names of the reports there are.
        pages: name of the report of each run, by its id and night.
    """
    drawing = curve.large(trend)
    kind = trend.kind
    return FigurePage(
        title=kind.title,
        group=shown.group(trend.step, trend.model),
        curve=drawing,
        top=shown.value(kind, drawing.top),
        bottom=shown.value(kind, drawing.bottom),
        first=trend.points[0].date,
        last=trend.points[-1].date,
        changes=change_rows(trend),
        unchanged=_unchanged([trend]),
        rows=tuple(_point_row(trend, point, reports, pages) for point in reversed(trend.points)),
        note=_note(trend),
    )


def _unchanged(trends: Sequence[Trend]) -> str:
    """Return what is said where no change is listed: too few nights are no sign that nothing changed."""
    judged = any(not trend.missing for trend in trends)
    return "None in the nights recorded." if judged else "None can be told yet: too few nights hold a value."


def _note(trend: Trend) -> str:
    better = {"higher": "Higher is better.", "lower": "Lower is better."}.get(trend.kind.better, "")
    few = f"{display.plural(trend.missing, 'more night')} needed before a change can be told."
    return f"{better} {few if trend.missing else ''}".strip()


def _point_row(trend: Trend, point: Point, reports: Collection[str], pages: dict[str, str]) -> PointRow:
    own = [pages.get(f"{point.date} {part.run_id}", "") for part in point.parts]
    text = shown.value(trend.kind, point.value) if point.parts else "no data"
    report = next((name for name in own if name in reports), "")
    return PointRow(date=point.date, label=shown.label(point.label), value=text, report=report)


def addresses(nights: Sequence[Night]) -> dict[str, str]:
    """Return the name of the report of each run, by its night and id."""
    return {f"{night.date} {part.run_id}": night.page for night in nights for part in night.measured}
