"""Small bars in tables: the GPU time a row lost, its largest class in the fill of that class."""

from collections.abc import Sequence

from gpureport.fleet.page.page_model import LossBars
from gpureport.report.charts.elements import HorizontalScale, define_patterns, paint_shape, write_document
from gpureport.report.model.pictures import TimeSegment

_HEIGHT = 12.0


def draw_loss_bars(bars: LossBars, prefix: str, width: float | None = None) -> tuple[str, ...]:
    """Return one figure a row; empty where a row has no bar.

    Args:
        bars: the rows.
        prefix: begins every id, unlike that of any other figure of the page.
        width: of a figure in points; that of its surroundings when None.
    """
    scale = HorizontalScale(start=0.0, end=bars.end, width=width)
    # the figures of a page share the hatches of the first; on paper each is a file of its own
    own = [f"{prefix}{place}" if width else prefix for place in range(len(bars.rows))]
    keys = [part.key for row in bars.rows for part in row]
    figures = []
    for place, row in enumerate(bars.rows):
        patterns = define_patterns([part.key for part in row] if width else keys, own[place])
        shared = patterns if width or place == _first_drawn(bars) else ""
        figures.append(_draw_row(row, scale, own[place], shared) if row else "")
    return tuple(figures)


def _first_drawn(bars: LossBars) -> int:
    return next((place for place, row in enumerate(bars.rows) if row), 0)


def _draw_row(row: Sequence[TimeSegment], scale: HorizontalScale, prefix: str, patterns: str) -> str:
    start, shapes = 0.0, [patterns]
    for part in row:
        at, length = scale.position(start), scale.length(part.value)
        shapes.append(paint_shape(part.key, prefix, f'rect x="{at}" width="{length}" height="{_HEIGHT:g}"'))
        start += part.value
    words = ", ".join(f"{part.label} {part.text}" for part in row)
    return write_document(shapes, width=scale.width, height=_HEIGHT, label=words)
