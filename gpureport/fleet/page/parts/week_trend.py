"""The trend: GPU time of each week, and how much of it was lost."""

from collections.abc import Sequence
from datetime import date

from gpureport.fleet.fleet_report import FleetReport, Week
from gpureport.fleet.page.amounts import Amounts, format_lost_share
from gpureport.fleet.page.page_model import PagePart, WeekColumn
from gpureport.fleet.page.period import format_day
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.wording import display

_MOST = 53
"""Weeks shown, the newest: a year."""


def build_week_part(report: FleetReport, amounts: Amounts) -> PagePart | None:
    """Return the trend; None with fewer than two weeks."""
    weeks = report.weeks
    if len(weeks) < 2:  # noqa: PLR2004 - one week is no trend
        return None
    shown = weeks[-_MOST:]
    left_out = f"The {len(weeks) - _MOST} weeks before are in the JSON." if len(weeks) > _MOST else ""
    undated = report.undated_gpu_seconds
    dateless = f"{amounts.format_time_and_unit(undated)} have no dates, and are in no week." if undated else ""
    key = "Below: used. Above it: lost, with its share."
    partial = "Hatched: the runs cover only part of the week." if any(week.is_partial for week in shown) else ""
    return PagePart(
        id="weeks",
        title="Week by week",
        line=_describe_trend(shown),
        is_open=True,
        weeks=tuple(_build_column(week, amounts) for week in shown),
        table=_build_table(shown, amounts),
        caption=" ".join(filter(None, (key, partial))),
        notes=tuple(filter(None, (left_out, dateless))),
    )


def _describe_trend(weeks: Sequence[Week]) -> str:
    """Return the share lost in the first and in the last whole week that has runs."""
    whole = [week for week in weeks if not week.is_partial and week.use.gpu_seconds]
    if len(whole) < 2:  # noqa: PLR2004 - as above
        return f"{len(weeks)} weeks"
    first, last = whole[0], whole[-1]
    return (
        f"{format_lost_share(first.use)} lost in the week of {format_day(date.fromisoformat(first.monday))}, "
        f"{format_lost_share(last.use)} in that of {format_day(date.fromisoformat(last.monday))}"
    )


def _build_column(week: Week, amounts: Amounts) -> WeekColumn:
    use, day = week.use, date.fromisoformat(week.monday)
    share = format_lost_share(use) if use.gpu_seconds else ""
    words = f"{amounts.format_time_and_unit(use.gpu_seconds)}, {share} lost" if share else "no run"
    return WeekColumn(
        label=f"{day.day} {day:%b}",
        used=amounts.scale(max(use.gpu_seconds - use.lost_gpu_seconds - use.unknown_gpu_seconds, 0.0)),
        lost=amounts.scale(use.lost_gpu_seconds),
        unknown=amounts.scale(use.unknown_gpu_seconds),
        lost_text=share if share != display.NOT_RECORDED else "",
        is_partial=week.is_partial,
        words=f"week of {format_day(day)}: {words}{', partial' if week.is_partial else ''}",
    )


def _build_table(weeks: Sequence[Week], amounts: Amounts) -> Table:
    money = ("Cost lost",) if amounts.is_priced else ()
    return Table(
        columns=("Week of", "Share lost", f"Lost, {amounts.unit}", f"In all, {amounts.unit}", *money, "Runs"),
        numeric=(True, True, True, *(True for _ in money), True),
        rows=tuple(_build_row(week, amounts) for week in weeks),
    )


def _build_row(week: Week, amounts: Amounts) -> Row:
    use = week.use
    figures = (
        format_lost_share(use) if use.gpu_seconds else "no run",
        amounts.format_time(use.lost_gpu_seconds),
        amounts.format_time(use.gpu_seconds),
        *((amounts.format_lost_cost(use),) if amounts.is_priced else ()),
        display.integer(use.runs),
    )
    day = format_day(date.fromisoformat(week.monday))
    return Row(
        head=Cell(text=day, small="partial" if week.is_partial else ""),
        cells=tuple(Cell(text=text) for text in figures),
    )
