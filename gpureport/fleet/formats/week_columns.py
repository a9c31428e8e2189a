"""Columns of weeks: GPU time used below, lost above, unknown on top; partial weeks are hatched."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from gpureport.fleet.page.page_model import WeekColumn
from gpureport.report.charts.elements import NARROW, HorizontalScale, measure_text, paint, write_document
from gpureport.report.charts.palette import BUSY, GRID, MUTED, PAPER, SEVERITY, TRACK

_HEIGHT, _TOP, _FOOT = 110.0, 16.0, 18.0
"""Height of the highest column, and the room above and below it for text."""

_WIDE = 900.0
"""Points that the chart is wide on a wide page at least."""

_FREE = 0.16
"""Share of the room of a column that is left free."""

_GAP = 6.0
"""Points between two labels at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axes:
    """Where a week lies across, the height of a unit of GPU time, and how often weeks have labels."""

    across: HorizontalScale
    unit: float
    each: int
    each_on_narrow: int

    def choose_class(self, place: int) -> str | None:
        """Return the attribute of a label for wide pages alone; None without a label."""
        if place % self.each:
            return None
        return "" if self.across.width or place % self.each_on_narrow == 0 else ' class="wide-only"'


def draw_week_columns(weeks: Sequence[WeekColumn], prefix: str, width: float | None = None) -> str:
    """Return the chart.

    Args:
        weeks: the oldest first.
        prefix: begins every id, unlike that of any other figure of the page.
        width: of the figure in points; that of its surroundings when None.
    """
    highest = max((week.used + week.lost + week.unknown for week in weeks), default=0.0)
    axes = _Axes(
        across=HorizontalScale(start=0.0, end=float(len(weeks)), width=width),
        unit=_HEIGHT / highest if highest else 0.0,
        each=_space_labels(weeks, width or _WIDE),
        each_on_narrow=_space_labels(weeks, width or NARROW),
    )
    columns = (element for place, week in enumerate(weeks) for element in _draw_week(place, week, axes, prefix))
    return write_document(
        [_define_hatch(prefix), _draw_base(axes), *columns],
        width=width,
        height=_TOP + _HEIGHT + _FOOT,
        label="; ".join(week.words for week in weeks),
    )


def _space_labels(weeks: Sequence[WeekColumn], width: float) -> int:
    """Return every how many weeks a label fits, a multiple of two from two on."""
    longest = max(measure_text(text) for week in weeks for text in (week.label, week.lost_text)) + _GAP
    each = 1
    while each < len(weeks) and longest * len(weeks) > width * each:
        each *= 2
    return each


def _define_hatch(prefix: str) -> str:
    ink = f'{paint("stroke", PAPER)} stroke-width="1.6" stroke-opacity=".7"'
    path = f'<path d="M-1 1L1 -1M0 6L6 0M5 7L7 5" {ink}/>'
    tile = f'<pattern id="{prefix}partial" width="6" height="6" patternUnits="userSpaceOnUse">{path}</pattern>'
    return f"<defs>{tile}</defs>"


def _draw_base(axes: _Axes) -> str:
    y = f"{_TOP + _HEIGHT:g}"
    return f'<line x1="0" x2="{axes.across.position(axes.across.end)}" y1="{y}" y2="{y}" {paint("stroke", GRID)}/>'


def _draw_week(place: int, week: WeekColumn, axes: _Axes, prefix: str) -> Iterator[str]:
    bottom = top = _TOP + _HEIGHT
    x, wide = axes.across.position(place + _FREE / 2), axes.across.length(1 - _FREE)
    for amount, colour in ((week.used, BUSY), (week.lost, SEVERITY["problem"]), (week.unknown, TRACK)):
        height = amount * axes.unit
        top -= height
        if height:
            yield f'<rect x="{x}" y="{top:.1f}" width="{wide}" height="{height:.1f}" {paint("fill", colour)}/>'
    if week.is_partial:
        fill = f'fill="url(#{prefix}partial)"'
        yield f'<rect x="{x}" y="{top:.1f}" width="{wide}" height="{bottom - top:.1f}" {fill}/>'
    attribute = axes.choose_class(place)
    if attribute is not None:
        texts = (
            (week.lost_text, top - 4, 'fill="currentColor" font-weight="600"'),
            (week.label, bottom + 13, paint("fill", MUTED)),
        )
        drawn = (_write_text(text, y, ink) for text, y, ink in texts if text)
        yield axes.across.place(place + 0.5, "".join(drawn), attribute)


def _write_text(text: str, y: float, ink: str) -> str:
    return f'<text y="{y:.1f}" text-anchor="middle" {ink}>{escape(text)}</text>'
