"""Elements of SVG written by hand: across in per cent on a page, so that a figure fits any width; in points on paper.

Nothing is stretched: heights, text, lines and hatches are in points either way. No element has a style attribute, and
ids begin with a prefix of their own. Two classes are for the style sheet of a page: `wide-only` marks text that fits
on a wide page alone, `narrow-only` the shorter text in its place, which no one sees without a style sheet.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np

from gpureport.columns import FloatArray
from gpureport.report.charts.palette import GRID, MUTED, Colour
from gpureport.report.charts.svg import FONT_FAMILY
from gpureport.report.model.pictures import Tick

WIDE, NARROW = 490.0, 320.0
"""Least points that a figure in a row is wide on a page of full width, and on any narrower one."""

TEXT = 11.0
"""Size of text in figures."""

_LETTER = 0.68
"""Mean width of a bold letter, as a part of its size."""

_REGULAR, _GAP = 0.56, 4.0
"""Mean width of a regular letter, as a part of its size, and least points between two labels of an axis."""

AXIS_HEIGHT = 16.0

WIDE_ONLY = ' class="wide-only"'
"""Attribute of what a style sheet hides where a figure is narrow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizontalScale:
    """Where values lie across a figure that begins at `start` and ends at `end`; `width` is None on a page."""

    start: float
    end: float
    width: float | None

    def share(self, value: float) -> float:
        """Return how far across a value lies, from 0 to 1."""
        return (value - self.start) / (self.end - self.start) if self.end > self.start else 0.0

    def position(self, value: float) -> str:
        """Return a value as a coordinate."""
        return self._format(self.share(value))

    def length(self, value: float) -> str:
        """Return a difference of values as a length."""
        return self._format(self.share(self.start + value))

    def _format(self, share: float) -> str:
        return f"{shorten_number(share * 100)}%" if self.width is None else shorten_number(share * self.width)

    def holds_text(self, text: str, length: float, width: float | None = None) -> bool:
        """Return whether text fits into a length of values, on a page of a width where the figure has none."""
        points = self.share(self.start + length) * (self.width or width or WIDE)
        return measure_text(text) + 6 <= points

    def place(self, value: float, drawn: str, attributes: str = "") -> str:
        """Return elements drawn around 0 as they stand at a value."""
        if self.width is None:
            # the style sheet of a page may say how every svg is displayed, so attributes stand at a group
            return f'<g{attributes}><svg x="{self.position(value)}" overflow="visible">{drawn}</svg></g>'
        return f'<g transform="translate({self.position(value)} 0)"{attributes}>{drawn}</g>'


def measure_text(text: str) -> float:
    """Return the width of bold text at most, in points."""
    return len(text) * TEXT * _LETTER


def shorten_number(value: float, decimals: int = 2) -> str:
    """Return a coordinate without needless digits."""
    text = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if text in {"", "-0"} else text


def paint(role: str, colour: Colour) -> str:
    """Return the attributes that fill (`fill`) or draw (`stroke`) something in a colour of the palette."""
    return f'{role}="{colour.fixed}"' + (f' class="{role[0]}-{colour.css}"' if colour.css else "")


def write_document(body: Iterable[str], *, width: float | None, height: float, label: str) -> str:
    """Return a figure: as wide as its surroundings where `width` is None; `label` says in words what it shows."""
    size = (
        f'width="100%" height="{height:g}"'
        if width is None
        else f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    )
    said = escape(label)
    return (
        f'<svg {size} role="img" aria-label="{said}" font-family="{escape(FONT_FAMILY)}" font-size="{TEXT:g}" '
        f'fill="none">{"".join(body)}</svg>'
    )


def draw_grid(ticks: Sequence[Tick], scale: HorizontalScale, height: float) -> str:
    """Return a line down the figure at each tick."""
    lines = (
        f'<line x1="{(at := scale.position(tick.at))}" x2="{at}" y1="0" y2="{height:g}"/>'
        for tick in ticks
        if scale.start <= tick.at <= scale.end
    )
    return f"<g {paint('stroke', GRID)}>{''.join(lines)}</g>"


def draw_axis(ticks: Sequence[Tick], scale: HorizontalScale) -> str:
    """Return the labels of an axis as a figure of its own."""
    inside = [tick for tick in ticks if scale.start <= tick.at <= scale.end]
    shown = _thin_ticks(inside, scale, scale.width or WIDE)
    narrow = _thin_ticks(shown, scale, scale.width or NARROW)
    texts = "".join(
        f'<text x="{scale.position(tick.at)}" y="11" text-anchor="{_choose_anchor(tick, scale)}"'
        f"{'' if tick in narrow else WIDE_ONLY}>{escape(tick.text)}</text>"
        for tick in shown
    )
    label = f"Axis: {', '.join(tick.text for tick in shown)}"
    body = f"<g {paint('fill', MUTED)}>{texts}</g>"
    return write_document([body], width=scale.width, height=AXIS_HEIGHT, label=label)


def _thin_ticks(ticks: Sequence[Tick], scale: HorizontalScale, width: float) -> Sequence[Tick]:
    """Return all ticks, or every second, third … where the labels of all would run into each other."""
    strides = (ticks[::stride] for stride in range(1, len(ticks)))
    return next((some for some in strides if not _run_together(some, scale, width)), ticks[:1])


def _run_together(ticks: Sequence[Tick], scale: HorizontalScale, width: float) -> bool:
    """Return whether the label of a tick reaches that of the next, in a figure of a width in points."""
    ends = []
    for tick in ticks:
        length, at = len(tick.text) * TEXT * _REGULAR, scale.share(tick.at) * width
        left = at - {"start": 0.0, "middle": length / 2, "end": length}[_choose_anchor(tick, scale)]
        ends.append((left, left + length))
    return any(left - right < _GAP for (_, right), (left, _) in pairwise(ends))


def _choose_anchor(tick: Tick, scale: HorizontalScale) -> str:
    """Return where a label lies to its tick: below its middle unless it would leave the figure."""
    half, share = measure_text(tick.text) / 2 / (scale.width or NARROW), scale.share(tick.at)
    return "start" if share < half else "end" if share > 1 - half else "middle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """An area in which values are drawn over equal buckets, from `top` down to `top + height`.

    On a page its paths are in units of their own, stretched to the width; lines keep their thickness.
    """

    buckets: int
    top: float
    height: float
    width: float | None
    left: float = 0.0
    span: float = 1.0

    def wrap(self, body: str) -> str:
        """Return paths of this area as they stand in the figure."""
        if self.width is not None:
            return body
        left, wide, high = shorten_number(self.left * 100), shorten_number(self.span * 100), f"{self.height:g}"
        box = f'x="{left}%" y="{self.top:g}" width="{wide}%" height="{high}" viewBox="0 0 {self.buckets} {high}"'
        return f'<svg {box} preserveAspectRatio="none">{body}</svg>'

    def steps(self, shares: FloatArray) -> str:
        """Return the path of an area under steps, one a bucket; NaN leaves it out."""
        return "".join(
            f"M{self._x(first)} {self._y(0)}"
            + "".join(
                f"V{self._y(value)}H{self._x(first + place + 1)}" for place, value in enumerate(shares[first:stop])
            )
            + f"V{self._y(0)}z"
            for first, stop in find_known_runs(shares)
        )

    def line(self, shares: FloatArray) -> str:
        """Return the path of a line through the middles of the buckets; NaN interrupts it."""
        return "".join(
            "M"
            + "L".join(f"{self._x(place + 0.5)} {self._y(shares[place])}" for place in range(first, stop))
            + ("h.01" if stop - first == 1 else "")
            for first, stop in find_known_runs(shares)
        )

    def _x(self, bucket: float) -> str:
        if self.width is None:
            return shorten_number(bucket, 1)
        return shorten_number((self.left + bucket / self.buckets * self.span) * self.width)

    def _y(self, share: float) -> str:
        top = 0.0 if self.width is None else self.top
        return shorten_number(top + (1 - min(max(float(share), 0.0), 1.0)) * self.height, 1)


def find_known_runs(values: FloatArray) -> list[tuple[int, int]]:
    """Return first and past-the-end place of each stretch of values that are not NaN."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], ~np.isnan(values), [0]])))
    return [(int(first), int(stop)) for first, stop in edges.reshape(-1, 2)]
