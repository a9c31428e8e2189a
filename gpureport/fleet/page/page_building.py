"""The page, part by part, from the report on many runs."""

from collections.abc import Iterator

from gpureport.fleet.fleet_report import FleetReport
from gpureport.fleet.page.amounts import Amounts, choose_amounts
from gpureport.fleet.page.class_bars import build_class_bars
from gpureport.fleet.page.fleet_tiles import build_tiles
from gpureport.fleet.page.headline import build_verdict
from gpureport.fleet.page.page_model import FleetPage, PagePart
from gpureport.fleet.page.parts.card_health import build_health_part
from gpureport.fleet.page.parts.left_out import build_left_out_parts
from gpureport.fleet.page.parts.loss_tables import build_grouping_parts, build_run_part
from gpureport.fleet.page.parts.method import build_method_part
from gpureport.fleet.page.parts.savings import build_actions, build_saving_part
from gpureport.fleet.page.parts.week_trend import build_week_part
from gpureport.fleet.page.period import format_period
from gpureport.report.wording import display

_TITLE = 80


def build_page(report: FleetReport, *, command: str, version: str, title: str | None = None) -> FleetPage:
    """Return the page.

    Args:
        report: the content.
        command: the command that made it.
        version: of gpureport.
        title: of the window; `GPU fleet` with the period when None.
    """
    amounts = choose_amounts(report)
    period = format_period(report)
    return FleetPage(
        title=display.shorten(display.clean(title), _TITLE)
        if title
        else ", ".join(filter(None, ("GPU fleet", period))),
        quiet_line=" \N{MIDDLE DOT} ".join(filter(None, _list_read(report, period))),
        version=display.clean(version),
        command=display.clean(command),
        ended=(report.ended or 0) // 1_000_000,
        verdict=build_verdict(report, amounts),
        tiles=build_tiles(report, amounts),
        spent=build_class_bars(report, amounts),
        actions=build_actions(report.savings, amounts),
        parts=tuple(_list_parts(report, amounts, command, version)),
    )


def _list_read(report: FleetReport, period: str) -> Iterator[str]:
    """Yield what was read."""
    yield display.shorten(display.clean(report.selection), _TITLE) or "all runs"
    yield display.plural(report.use.runs, "run")
    yield display.plural(report.gpus, "GPU") if report.gpus is not None else ""
    yield display.plural(report.nodes, "node") if report.nodes else "no node recorded"
    yield period


def _list_parts(report: FleetReport, amounts: Amounts, command: str, version: str) -> Iterator[PagePart]:
    """Yield the parts in order: those that are open first."""
    parts = [part for part in _build_parts(report, amounts, command, version) if part]
    yield from (part for part in parts if part.is_open)
    yield from (part for part in parts if not part.is_open)


def _build_parts(report: FleetReport, amounts: Amounts, command: str, version: str) -> Iterator[PagePart | None]:
    """Yield every part; one that has nothing to say is None."""
    yield from build_grouping_parts(report.groupings, amounts)
    yield build_health_part(report.health, amounts)
    yield build_week_part(report, amounts)
    if report.worst_runs:
        yield build_run_part(report.worst_runs, amounts)
    yield build_saving_part(report.savings, amounts)
    yield from build_left_out_parts(report, amounts)
    yield build_method_part(report, command, version)
