"""Timelines as lines of plain text: the height of a block is the mean utilisation of a stretch of time."""

from collections.abc import Iterator, Sequence

import numpy as np

from gpureport.columns import FloatArray
from gpureport.report.model.time_charts import Timeline
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page

_EVENT = "^"
_LABEL = 24
_BLANK = 0.005
"""Share of the full height below which nothing is drawn."""

_HEIGHTS, _DIGITS = " ▁▂▃▄▅▆▇█", " 123456789"


def timeline_lines(runs: Sequence[Timeline], page: Page) -> Iterator[Line]:
    """Yield the strips of every run, or why it has none, and what their signs mean."""
    if not runs:
        return
    yield from page.heading("Timeline")
    shown = [run for run in runs if run.strips]
    signs = _DIGITS if page.ascii else _HEIGHTS
    for run in runs:
        yield from page.wrapped(run.label, 2)
        if not run.strips:
            yield from page.wrapped(run.absent, 4)
            continue
        names = [strip.label for strip in run.strips] + ["events"] * bool(run.events)
        label = min(max(map(display.terminal_width, names)), _LABEL)
        columns = len(run.strips[0].coarse)
        together = -(-columns // max(page.width - label - 3, 1))
        for strip in run.strips:
            yield Line(f"  {page.column(strip.label, label)} {_sparkline(_downsample(strip.coarse, together), signs)}")
        yield from _events(run, label, -(-columns // together))
    if not shown:
        return
    text = "Height: mean GPU utilisation, 0 to 100% (blank: 0%, ?: not recorded)."
    told = f" {_EVENT}: event of the log, listed under data quality." if any(run.events for run in shown) else ""
    yield from page.wrapped(text + told, 2, style="soft")


def _events(run: Timeline, label: int, columns: int) -> Iterator[Line]:
    """Yield a line that marks the columns in which the log says something happened."""
    at = [event.at for event in run.events if event.at is not None]
    places = {min(int(seconds / max(run.seconds, 1e-3) * columns), columns - 1) for seconds in at}
    if places:
        marks = "".join(_EVENT if place in places else " " for place in range(columns))
        yield Line(f"  {'events':<{label}} {marks.rstrip()}")


def draw_heights(means: FloatArray, length: int, page: Page, scale: tuple[float, float] = (0.0, 1.0)) -> str:
    """Return `length` characters whose heights between two ends are means of stretches of a series."""
    low, high = scale
    signs = _DIGITS if page.ascii else _HEIGHTS
    starts = np.arange(length) * len(means) // max(length, 1)
    ends = np.maximum((np.arange(length) + 1) * len(means) // max(length, 1), starts + 1)
    stretches = (means[start:end] for start, end in zip(starts, ends, strict=True))
    known = (stretch[np.isfinite(stretch)] for stretch in stretches)
    shares = [(each.mean() - low) / max(high - low, 1e-9) if len(each) else np.nan for each in known]
    heights = np.array(shares, dtype=np.float64)
    heights[heights < _BLANK] = 0.0
    return _sparkline(heights, signs)


def _sparkline(means: FloatArray, signs: str) -> str:
    top = len(signs) - 1
    return "".join("?" if np.isnan(mean) else signs[min(int(np.ceil(mean * top)), top)] for mean in means)


def _downsample(means: FloatArray, together: int) -> FloatArray:
    """Return the means of neighbouring columns, so that a strip fits a narrow page; unrecorded ones are left out."""
    if together == 1:
        return means
    rows = np.pad(means, (0, -len(means) % together), constant_values=np.nan).reshape(-1, together)
    known = ~np.isnan(rows)
    count = known.sum(axis=1)
    total = np.where(known, rows, 0.0).sum(axis=1)
    coarser: FloatArray = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return coarser
