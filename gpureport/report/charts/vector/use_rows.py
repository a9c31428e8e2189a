"""Small multiples of GPU utilisation, with a band of classes below each curve."""

from collections.abc import Iterator

from gpureport.report.charts.palette import BUSY, GRID
from gpureport.report.charts.vector.class_patterns import define_patterns, paint_shape
from gpureport.report.charts.vector.vector_elements import (
    HorizontalScale,
    Plot,
    draw_axis,
    draw_grid,
    paint,
    shorten_number,
    write_document,
)
from gpureport.report.model.pictures import ClassStretch, UseOverTime, UseRow

_CURVE, _GAP, BAND_HEIGHT = 32.0, 2.0, 7.0


def draw_use_rows(use: UseOverTime, prefix: str, width: float | None = None) -> tuple[str, ...]:
    """Return one figure a row, then one of the axis.

    Args:
        use: the rows.
        prefix: begins every id, unlike that of any other figure of the page.
        width: of a figure in points; that of its surroundings when None.
    """
    scale = HorizontalScale(start=0.0, end=use.seconds, width=width)
    height = _CURVE + _GAP + BAND_HEIGHT
    rows = (
        write_document(
            [
                draw_grid(use.ticks, scale, height),
                _draw_curve(row, scale),
                *draw_band(row.band, scale, f"{prefix}{place}", top=_CURVE + _GAP),
            ],
            width=width,
            height=height,
            label=f"GPU utilisation over time, {row.label}: {row.text}; {row.total}",
        )
        for place, row in enumerate(use.rows)
    )
    return (*rows, draw_axis(use.ticks, scale))


def _draw_curve(row: UseRow, scale: HorizontalScale) -> str:
    """Return the curve, and a dashed line at 100%, as long as the run."""
    length = len(row.mean) * row.bucket_seconds
    plot = Plot(
        buckets=max(len(row.mean), 1), top=1, height=_CURVE - 1, width=scale.width, span=max(scale.share(length), 1e-6)
    )
    end = scale.position(max((stretch.end for stretch in row.band), default=length))
    full = f'<line x1="0" x2="{end}" y1="1" y2="1" {paint("stroke", GRID)} stroke-dasharray="2 3"/>'
    area = f'<path d="{plot.steps(row.mean)}" {paint("fill", BUSY)} shape-rendering="crispEdges"/>'
    return full + plot.wrap(area)


def draw_band(
    band: tuple[ClassStretch, ...], scale: HorizontalScale, prefix: str, *, top: float, height: float = BAND_HEIGHT
) -> Iterator[str]:
    """Yield a band of classes; on a page each is one rectangle that a path cuts."""
    by_class: dict[str, list[ClassStretch]] = {}
    for stretch in band:
        by_class.setdefault(stretch.key, []).append(stretch)
    yield define_patterns(by_class, prefix)
    for key, stretches in by_class.items():
        if scale.width is not None:
            path = _write_path(stretches, scale, scale.width, top, height)
            yield paint_shape(key, prefix, f'path d="{path}" shape-rendering="crispEdges"')
            continue
        cut = f"{prefix}-cut-{key}"
        path = _write_path(stretches, scale, 1.0, 0.0, 1.0)
        yield f'<clipPath id="{cut}" clipPathUnits="objectBoundingBox"><path d="{path}"/></clipPath>'
        shape = f'rect y="{top:g}" width="100%" height="{height:g}" clip-path="url(#{cut})"'
        yield paint_shape(key, prefix, shape)


def _write_path(stretches: list[ClassStretch], scale: HorizontalScale, width: float, top: float, height: float) -> str:
    """Return the rectangles of stretches in units of which the figure is `width` wide."""
    decimals = 5 if width <= 1 else 2
    parts = []
    for stretch in stretches:
        left, right = (shorten_number(scale.share(at) * width, decimals) for at in (stretch.start, stretch.end))
        if left != right:
            parts.append(f"M{left} {top:g}H{right}V{top + height:g}H{left}z")
    return "".join(parts)
