"""SVG elements. On pages, x is in per cent, so that figures fit any width. In print and images, x is in points.

No element has a style attribute, since a content security policy may forbid it. Each figure has an id prefix.
CSS shows `wide-only` text on wide pages and `narrow-only` text on narrow ones.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from gpureport.analysis.series.intervals import find_runs
from gpureport.columns import FloatArray
from gpureport.report.charts.palette import CLASSES, COLOURS, OTHER_CLASS, ClassFill
from gpureport.report.model.pictures import ClassStretch, Tick
from gpureport.report.wording import display

WIDE, NARROW = 490.0, 320.0
"""Minimum width of a figure in a row, in points."""
TEXT = 11.0  # Size of text in figures, in points.
_BOLD, _REGULAR = 0.68, 0.56  # Mean width of a letter, relative to its size.
_AXIS_HEIGHT = 16.0
WIDE_ONLY = ' class="wide-only"'
_FONTS = escape("system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif")
_TILES = {
    "////": (6, "M-1 1L1 -1M0 6L6 0M5 7L7 5", 1.4),
    "//": (8, "M-1 1L1 -1M0 8L8 0M7 9L9 7", 0.8),
    "\\\\": (6, "M-1 5L1 7M0 0L6 6M5 -1L7 1", 0.9),
    "\\\\\\\\": (6, "M-1 5L1 7M0 0L6 6M5 -1L7 1", 1.6),
    "||": (5, "M2.5 0V5", 1.2),
    "--": (4, "M0 2H4", 0.9),
    "xx": (6, "M0 0L6 6M0 6L6 0", 0.9),
    "..": (5, "M1.5 2.5h1.6", 1.6),
    "oo": (6, "M2 3h2.2", 2.2),
    "//--": (6, "M0 6L6 0M0 3H6", 0.8),
}
"""Tile size, path and line width of each hatch."""
_MOST_TICKS, _MOST_TIMES = 6, 7
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
_UNITS = (("days", 86_400, 172_800), ("h", 3600, 7200), ("min", 60, 120), ("s", 1, 0))
"""Time units: name, seconds, and seconds of the shortest axis that uses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizontalScale:
    """Maps values from `start` to `end` to x positions. On a page, `width` is None."""

    start: float
    end: float
    width: float | None

    def share(self, value: float) -> float:
        return (value - self.start) / (self.end - self.start) if self.end > self.start else 0.0

    def position(self, value: float) -> str:
        share = self.share(value)
        return f"{shorten_number(share * 100)}%" if self.width is None else shorten_number(share * self.width)

    def length(self, value: float) -> str:
        return self.position(self.start + value)

    def holds_text(self, text: str, length: float, width: float | None = None) -> bool:
        return measure_text(text) + 6 <= self.share(self.start + length) * (self.width or width or WIDE)

    def place(self, value: float, drawn: str, attributes: str = "") -> str:
        if self.width is None:
            # a page's style sheet may override the attributes of svg
            return f'<g{attributes}><svg x="{self.position(value)}" overflow="visible">{drawn}</svg></g>'
        return f'<g transform="translate({self.position(value)} 0)"{attributes}>{drawn}</g>'


def measure_text(words: str) -> float:
    return len(words) * TEXT * _BOLD


def shorten_number(value: float, decimals: int = 2) -> str:
    text = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if text in {"", "-0"} else text


def _n(value: float) -> str:
    return shorten_number(float(value), 1)


def paint(role: str, colour: str) -> str:
    """Return attributes for a palette colour or, for `ink`, the colour of the text."""
    return f'{role}="{COLOURS[colour]}" class="{role[0]}-{colour}"' if colour in COLOURS else f'{role}="currentColor"'


def line(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    return f'<line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" {look}/>'


def text(  # noqa: PLR0913 - where, what, how
    x: float, y: float, words: str, colour: str = "ink", *, size: float = TEXT, anchor: str = "", bold: bool = False
) -> str:
    where = f' text-anchor="{anchor}"' if anchor else ""
    weight = ' font-weight="600"' if bold else ""
    look = f'font-size="{size:g}"{where}{weight} {paint("fill", colour)}'
    return f'<text x="{_n(x)}" y="{_n(y)}" {look}>{escape(words)}</text>'


def write_document(body: Iterable[str], *, width: float | None, height: float, label: str) -> str:
    size = f'width="100%" height="{height:g}"'
    if width is not None:
        size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    look = f'font-family="{_FONTS}" font-size="{TEXT:g}" fill="none"'
    return f'<svg {size} role="img" aria-label="{escape(label)}" {look}>{"".join(body)}</svg>'


def map_figures(drawn: Any, do: Callable[[str, str], Any], name: str = "figure") -> Any:
    if isinstance(drawn, str):
        return do(name, drawn)
    named = drawn.items() if isinstance(drawn, Mapping) else enumerate(drawn)
    made = {key: map_figures(each, do, f"{name}-{key}") for key, each in named}
    return made if isinstance(drawn, Mapping) else tuple(made.values())


def find_fill(key: str) -> ClassFill:
    return CLASSES.get(key, OTHER_CLASS)


def define_patterns(keys: Collection[str], prefix: str) -> str:
    tiles = ""
    for key, fill in ((key, find_fill(key)) for key in dict.fromkeys(keys)):
        if fill.hatch:
            side, path, thickness = _TILES[fill.hatch]
            ink = f'stroke="{fill.text}" stroke-width="{thickness:g}" stroke-opacity=".4"'
            tiles += f'<pattern id="{prefix}-{key}" width="{side}" height="{side}" patternUnits="userSpaceOnUse">'
            tiles += f'<path d="{path}" {ink}/></pattern>'
    return f"<defs>{tiles}</defs>" if tiles else ""


def paint_shape(key: str, prefix: str, shape: str) -> str:
    """Return a shape (`rect x="0" width="9"`) in the colour of a class, then its hatch, if any."""
    fill = find_fill(key)
    return f'<{shape} fill="{fill.colour}"/>' + (f'<{shape} fill="url(#{prefix}-{key})"/>' if fill.hatch else "")


def draw_swatch(key: str, label: str, prefix: str) -> str:
    drawn = [define_patterns([key], prefix), paint_shape(key, prefix, 'rect width="16" height="10" rx="2"')]
    return write_document(drawn, width=16, height=10, label=label)


def find_round_step(length: float) -> float:
    power = 10.0 ** math.floor(math.log10(length / _MOST_TICKS))
    return next(size * power for size in (1, 2, 5, 10) if length / (size * power) <= _MOST_TICKS)


def place_ticks(end: float, unit: str) -> tuple[Tick, ...]:
    if not 0 < end < math.inf:
        return ()
    step = find_round_step(end)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = [step * count for count in range(int(end / step * (1 + 1e-9)) + 1)]
    return tuple(
        Tick(at=at, text=f"{at:,.{decimals}f}" if place else f"0{display.GAP}{unit}") for place, at in enumerate(ticks)
    )


def place_time_ticks(start: float, end: float) -> tuple[Tick, ...]:
    if not start < end < math.inf:
        return ()
    days = _SECONDS[-1] * math.ceil((end - start) / _SECONDS[-1] / _MOST_TIMES)
    step = next((size for size in _SECONDS if (end - start) / size <= _MOST_TIMES), days)
    unit, size = next((name, size) for name, size, least in _UNITS if end >= least)
    times = range(math.ceil(start / step - 1e-9) * step, int(end * (1 + 1e-9)) + 1, step)
    numbers = (f"{at / size:,.2f}".rstrip("0").rstrip(".") for at in times)
    return tuple(
        Tick(at=float(at), text=f"{number}{display.GAP}{unit}") for at, number in zip(times, numbers, strict=True)
    )


def draw_grid(ticks: Sequence[Tick], scale: HorizontalScale, height: float) -> str:
    lines = (
        f'<line x1="{(at := scale.position(tick.at))}" x2="{at}" y1="0" y2="{height:g}"/>'
        for tick in ticks
        if scale.start <= tick.at <= scale.end
    )
    return f"<g {paint('stroke', 'grid')}>{''.join(lines)}</g>"


def draw_axis(ticks: Sequence[Tick], scale: HorizontalScale) -> str:
    # labels are a separate figure
    shown = [tick for tick in ticks if scale.start <= tick.at <= scale.end]
    room = scale.width or NARROW
    narrow = shown if sum(len(tick.text) + 1 for tick in shown) * TEXT * _REGULAR < room else shown[::2]
    shown, texts = narrow if scale.width else shown, ""
    for tick in shown:
        # centre labels below ticks unless they would not fit
        half, share = measure_text(tick.text) / 2 / room, scale.share(tick.at)
        anchor = "start" if share < half else "end" if share > 1 - half else "middle"
        look = f'x="{scale.position(tick.at)}" y="11" text-anchor="{anchor}"{"" if tick in narrow else WIDE_ONLY}'
        texts += f"<text {look}>{escape(tick.text)}</text>"
    label = f"Axis: {', '.join(tick.text for tick in shown)}"
    body = f"<g {paint('fill', 'muted')}>{texts}</g>"
    return write_document([body], width=scale.width, height=_AXIS_HEIGHT, label=label)


def draw_plot(  # noqa: PLR0913 - what, where, how
    shares: FloatArray, scale: HorizontalScale, top: float, height: float, look: str, *, span: float = 1.0, filled: bool
) -> str:
    """Draw shares in equal buckets across the fraction `span` of the width. NaN leaves a gap."""
    count, heights = max(len(shares), 1), np.clip(shares, 0.0, 1.0) * height
    bucket, ground = (1.0, height) if scale.width is None else (span * scale.width / count, top + height)
    write = _write_area if filled else _write_line
    sharp = ' shape-rendering="crispEdges"' if filled else ' vector-effect="non-scaling-stroke"'
    path = f'<path d="{write(heights, bucket, ground)}" {look}{sharp}/>'
    if scale.width is not None:
        return path
    frame = f'x="0%" y="{top:g}" width="{shorten_number(span * 100)}%" height="{height:g}"'
    return f'<svg {frame} viewBox="0 0 {count} {height:g}" preserveAspectRatio="none">{path}</svg>'


def stack_classes(band: Sequence[ClassStretch], seconds: float) -> dict[str, FloatArray]:
    """Return the upper edge of each class per bucket, starting with the topmost."""
    edges = np.arange(math.ceil(band[-1].end / seconds - 1e-6) + 1) * seconds if band else np.zeros(1)
    keys, top, stacked = [*CLASSES], np.zeros(len(edges) - 1), {}
    for key in sorted({each.key for each in band}, key=lambda key: keys.index(key) if key in keys else len(keys)):
        bounds = np.array([end for each in band if each.key == key for end in (each.start, each.end)])
        passed = np.cumsum(np.where(np.arange(len(bounds)) % 2, np.diff(bounds, prepend=0.0), 0.0))
        top = top + np.diff(np.interp(edges, bounds, passed)) / seconds
        stacked[key] = np.minimum(top, 1.0)
    return dict(reversed(stacked.items()))


def draw_band(  # noqa: PLR0913 - what, where, how
    stacked: dict[str, FloatArray], scale: HorizontalScale, prefix: str, top: float, height: float, *, span: float
) -> Iterator[str]:
    for key, shares in stacked.items():
        if scale.width is not None:
            path = _write_area(shares * height, span * scale.width / len(shares), top + height)
            yield paint_shape(key, prefix, f'path d="{path}" shape-rendering="crispEdges"')
            continue
        cut, path = f"{prefix}-cut-{key}", _write_area(shares * height, 1.0, height)
        area = f'<path transform="scale({1 / len(shares):.6f} {1 / height:g})" d="{path}"/>'
        yield f'<clipPath id="{cut}" clipPathUnits="objectBoundingBox">{area}</clipPath>'
        size = f'width="{shorten_number(span * 100)}%" height="{height:g}"'
        yield paint_shape(key, prefix, f'rect y="{top:g}" {size} clip-path="url(#{cut})"')


def _write_area(heights: FloatArray, bucket: float, ground: float) -> str:
    x = np.rint(np.arange(len(heights) + 1) * bucket * 10)
    y = np.rint(np.nan_to_num(heights) * 10)
    parts = []
    for first, stop in zip(*find_runs(~np.isnan(heights)), strict=True):
        turns = [first, *(np.flatnonzero(np.diff(y[first:stop])) + first + 1), stop]
        levels = np.diff(y[turns[:-1]], prepend=0.0)
        parts.append(f"M{_n(x[first] / 10)} {_n(ground)}")
        for up, (start, end) in zip(levels, pairwise(turns), strict=True):
            parts.append(f"{f'v{_n(-up / 10)}' if up else ''}h{_n((x[end] - x[start]) / 10)}")
        parts.append(f"V{_n(ground)}z")
    return "".join(parts)


def _write_line(heights: FloatArray, bucket: float, ground: float) -> str:
    points = [f"{shorten_number((at + 0.5) * bucket)} {_n(ground - height)}" for at, height in enumerate(heights)]
    return "".join(
        f"M{'L'.join(points[first:stop])}{f'm{_n(-bucket / 2)} 0h{_n(bucket)}' if stop - first == 1 else ''}"
        for first, stop in zip(*find_runs(~np.isnan(heights)), strict=True)
    )
