"""The figures of a report as SVG elements: those of a page or of a PDF at once, here or in a second process."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpureport.recording import Recording, arranged
from gpureport.report.comparison_parts import IntervalChart
from gpureport.report.model import Report
from gpureport.report.parts import TimeBar, Timeline
from gpureport.second_process import Answer, SecondProcess


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Figures that are wanted, each with what begins every id in it.

    Attributes:
        bars: shares of GPU time; none to draw where it is empty.
        timelines: strips of runs, or of parts of them.
        panels: figures of every step.
        width: of all but the panels in points, that of a page when None.
    """

    bars: tuple[TimeBar, ...]
    timelines: tuple[tuple[Timeline, str], ...]
    panels: tuple[tuple[IntervalChart, str], ...]
    width: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The figures in their order; a timeline without strips is empty.

    Attributes:
        bars: shares of GPU time; None where there are none.
        narrow: the same for a telephone; None where there are none, and on paper.
        timelines: strips of runs.
        panels: figures of every step.
    """

    bars: str | None
    narrow: str | None
    timelines: tuple[str, ...]
    panels: tuple[str, ...]


def wanted(report: Report, timelines: Sequence[tuple[Timeline, str]], width: float | None = None) -> Wanted:
    """Return what is to be drawn for a report.

    Args:
        report: the content.
        timelines: its runs, or parts of them, each with what begins every id in its figure.
        width: as in `Wanted`.
    """
    panels = report.comparison.charts if report.comparison else ()
    return Wanted(
        bars=report.gpu_time,
        timelines=tuple((_without_samples(run), prefix) for run, prefix in timelines),
        panels=tuple((chart, f"panel{at}") for at, chart in enumerate(panels)),
        width=width,
    )


def _without_samples(run: Timeline) -> Timeline:
    """Return a timeline that is small to send: its figure is drawn from the strips."""
    # an empty slice would be sent with all it is a slice of
    return replace(run, recording=Recording(run=run.recording.run, series=arranged(())))


def asked(wanted: Wanted, second: SecondProcess | None) -> Answer[Drawn]:
    """Let a second process draw what is wanted, or draw it here once it is asked for."""
    return (second or SecondProcess()).ask(draw, wanted)


def draw(wanted: Wanted) -> Drawn:
    """Draw what is wanted."""
    from gpureport.report import charts, interval_charts, narrow_bars  # noqa: PLC0415 - loads matplotlib

    width = wanted.width or charts.WIDTH
    return Drawn(
        bars=charts.time_bars(wanted.bars, "bars", width) if wanted.bars else None,
        narrow=narrow_bars.draw(wanted.bars, "narrow") if wanted.bars and wanted.width is None else None,
        timelines=tuple(charts.timeline(run, prefix, width) if run.strips else "" for run, prefix in wanted.timelines),
        panels=tuple(interval_charts.draw(chart, prefix) for chart, prefix in wanted.panels),
    )
